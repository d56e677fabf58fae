"""The output directory in the log."""

import logging

from hookloop_dialects.emloop.hooks import LogDir


def test_the_directory_is_logged_at_the_start_after_epochs_and_at_the_end(caplog):
    hook = LogDir(output_dir="some/where")
    with caplog.at_level(logging.INFO):
        hook.before_training()
        hook.after_epoch(epoch_id=1, epoch_data={})
        hook.after_training(False)
    assert caplog.messages == ["Output dir: some/where"] * 3
