"""Learning rates by step."""

import pytest
from tests.pointrix.cloud import train, train_cloud

from hookloop.engine.hook import Hook as NativeHook
from hookloop_dialects.pointrix.hook import LRSchedulerHook


def test_rates_are_set_by_the_step(tmp_path):
    class Look(NativeHook):
        def after_update(self, run):
            seen.append(run.optimizer.param_groups[0]["lr"])

    seen = []
    hook = LRSchedulerHook({"point_cloud.position": lambda step: 1 / step})
    train_cloud(tmp_path, hook, Look(), max_iters=3)
    assert seen == [1, 0.5, pytest.approx(1 / 3)]


def test_groups_without_a_function_keep_their_rate(tmp_path):
    trainer = train(tmp_path, LRSchedulerHook({"another": lambda step: 9.0}))
    assert trainer.run.optimizer.param_groups[0]["lr"] == 0.05
    trainer = train(tmp_path / "named", LRSchedulerHook({"group_0": lambda step: step / 10}))
    assert trainer.run.optimizer.param_groups[0]["lr"] == pytest.approx(0.3)
    assert LRSchedulerHook().schedulers == {}
