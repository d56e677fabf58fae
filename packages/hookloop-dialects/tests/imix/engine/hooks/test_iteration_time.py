"""The times of iterations and epochs."""

import logging

from tests.imix.tracing import train

from hookloop_dialects.imix import HookBase, PriorityStatus, engine


class Keep(HookBase):
    """Counts the times in the log buffer at the end."""

    _level = PriorityStatus.LOWEST

    def after_train(self):
        self.counts = {
            name: len(history.values())
            for name, history in self.trainer.log_buffer.histories().items()
            if name.endswith("_time")
        }


def test_every_iteration_and_epoch_is_timed(tmp_path):
    keep = Keep()
    train(tmp_path, engine.hooks.IterationTimerHook(), keep, max_epochs=2)
    assert keep.counts == {"data_time": 6, "iter_time": 6, "epoch_time": 2}


def test_a_warm_up_is_not_counted(tmp_path, caplog):
    keep = Keep()
    with caplog.at_level(logging.INFO, "imix"):
        train(tmp_path, engine.hooks.IterationTimerHook(warmup_iter=4), keep, max_epochs=2)
    assert keep.counts["iter_time"] == 2
    assert caplog.messages[-1].startswith("2 iterations in ")


def test_a_training_within_its_warm_up_has_no_summary(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "imix"):
        train(tmp_path, engine.hooks.IterationTimerHook(warmup_iter=9))
    assert not [line for line in caplog.messages if "iterations in" in line]
