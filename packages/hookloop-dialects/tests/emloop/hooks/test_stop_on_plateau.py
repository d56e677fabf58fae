"""The end of a training that stops improving."""

import pytest
from tests.emloop.looking import train

from hookloop_dialects.emloop.hooks import StopOnPlateau, TrainingTerminated


def test_a_plateau_ends_the_training():
    hook = StopOnPlateau(long_term=3, short_term=1, stream="train")
    hook.after_batch("train", {"loss": [1.0]})
    hook.after_epoch(epoch_data={"train": {}}, epoch_id=1)
    hook.after_batch("train", {"loss": [2.0]})
    with pytest.raises(TrainingTerminated, match="'loss' of 'train' is on a plateau"):
        hook.after_epoch(epoch_data={"train": {}}, epoch_id=2)


def test_a_run_stops_with_the_reason(tmp_path):
    hook = StopOnPlateau(long_term=4, short_term=1, stream="train", objective="max")
    trainer = train(tmp_path, hook, max_epochs=9)  # The loss falls, and shall not.
    assert trainer.run.outcome.reason == "'loss' of 'train' is on a plateau"
    assert trainer.run.progress.epoch == 2
