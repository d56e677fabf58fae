"""Optimizer hooks: by themselves the loop does their work, a subclass makes the update."""

from types import SimpleNamespace

import pytest
import torch
from tests.imix.tracing import train
from tests.imix.updating import by_hand, parts
from tests.tiny import assert_same_bits

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop_dialects.imix import engine


def test_the_optimizer_hook_clips(tmp_path):
    class Look(Hook):
        def after_update(self, run):
            norms.append(torch.nn.utils.get_total_norm([p.grad for p in run.model.parameters()]))

    norms = []
    hook = engine.hooks.OptimizerHook(grad_clip={"max_norm": 0.1, "norm_type": 2})
    train(tmp_path, hook, Look(), max_iters=1)
    assert norms[0] == pytest.approx(0.1, rel=1e-3)


def test_half_precision_is_the_trainers_and_asked_for_before_training(tmp_path):
    class Note(Hook):
        def before_train_iter(self, run):
            begun.append(run.progress.iter)

    begun = []
    with pytest.raises(HookError, match="precision='fp16'"):
        train(tmp_path, engine.hooks.Fp16OptimizerHook(), Note())
    assert not begun


@pytest.mark.parametrize(
    ("grad_clip", "limit", "kind"),
    [
        ({"max_norm": 2, "norm_type": 1}, 2, 1.0),
        ({"max_norm": 3}, 3, 2.0),
        (SimpleNamespace(max_grad_l2_norm=4), 4, 2.0),
    ],
)
def test_the_forms_of_clipping(grad_clip, limit, kind):
    native, _ = engine.hooks.OptimizerHook(grad_clip).native_hooks()
    assert native.name == "optimizer_hook"
    assert (native.max_norm, native.norm_type) == (limit, kind)


def test_without_clipping_a_run_is_as_without_the_hook(tmp_path):
    trainer = train(tmp_path, engine.hooks.OptimizerHook())
    assert [hook.name for hook in trainer.run.hooks] == ["optimizer_hook"]
    assert trainer.run.outcome.status == "completed"


def test_half_precision_is_accepted_where_the_run_has_it(tmp_path):
    hook = engine.hooks.Fp16OptimizerHook({"max_norm": 1}, grad_scaler_config={})
    assert train(tmp_path, hook, precision="bf16").run.outcome.status == "completed"


# --- subclasses, which make the update -----------------------------------------------------------


class Mine(engine.hooks.OptimizerHook):
    """Counts its updates."""

    def __init__(self, **options):
        super().__init__(**options)
        self.updates = 0

    def after_train_iter(self):
        super().after_train_iter()
        self.updates += 1


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("max_norm", [None, 0.5])
def test_a_subclass_makes_the_update_as_by_hand(steps, max_norm, tmp_path):
    own = parts()
    hook = Mine(grad_clip=None if max_norm is None else {"max_norm": max_norm})
    config = {"gradient_accumulation_steps": steps}
    trainer = train(tmp_path, hook, max_epochs=2, setup={"config": config}, **own)
    expected, losses = by_hand(6, steps, max_norm)
    assert hook.updates == 6
    assert_same_bits(own["model"], expected)
    # The loss that is recorded is not the one that the hook has divided.
    assert trainer.run.metrics.all_latest()["train/loss"] == pytest.approx(losses[-1])


def test_clipping_by_an_object_with_a_scaler_that_passes_on(tmp_path):
    own = parts()
    clip = SimpleNamespace(clip_norm_mode="all", max_grad_l2_norm=0.5, use_scale=True)
    train(tmp_path, Mine(grad_clip=clip), **own)
    assert_same_bits(own["model"], by_hand(3, 1, 0.5)[0])


def test_a_subclass_with_half_precision_scales_and_clips_whole_groups(tmp_path):
    class Half(engine.hooks.Fp16OptimizerHook):
        pass

    own = parts()
    hook = Half({"max_norm": 0.5}, {"init_scale": 4.0})
    config = {"gradient_accumulation_steps": 2}
    train(tmp_path, hook, max_iters=4, precision="fp16", setup={"config": config}, **own)
    assert hook.trainer.imixed_precision and hook._scaler.get_scale() == 4.0
    assert hook.trainer.log_buffer.history("grad_norm").values()[0][1] == 1


def test_accumulation_in_the_config_is_rejected_where_the_loop_makes_the_update(tmp_path):
    config = {"gradient_accumulation_steps": 4}
    with pytest.raises(HookError, match=r"has no effect.*Trainer\(accumulate=4\)"):
        train(tmp_path, engine.hooks.OptimizerHook(), setup={"config": config})
