"""Hooks whose work native hooks do, and classes that derive from them."""

from tests.vissl.phases import train

from hookloop_dialects.vissl import build_hook
from hookloop_dialects.vissl.classy_vision.hooks.precise_batch_norm_hook import (
    PreciseBatchNormHook,
)
from hookloop_dialects.vissl.hooks.grad_clip_hooks import GradClipHook


def test_a_row_is_made_from_its_settings():
    hook = PreciseBatchNormHook.from_config({"num_samples": 5})
    assert (hook.num_samples, hook.name()) == (5, "PreciseBatchNormHook")
    assert build_hook({"name": "precise_bn", "num_samples": 6}).num_samples == 6


def test_events_of_a_class_that_derives_are_called_beside_the_native_hook(tmp_path):
    class Counting(GradClipHook):
        steps = 0

        def on_step(self, task):
            self.steps += 1

    hook = Counting(max_norm=1)
    trainer = train(tmp_path, hook, max_epochs=1)
    assert hook.steps == 4
    assert [one.name for one in trainer.run.hooks if "clip" in one.name] == ["clip_gradients"]
