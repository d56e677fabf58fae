"""Optimizer hooks, whose work the loop does."""

from types import SimpleNamespace

import pytest
import torch
from tests.unit.dialects.imix.tracing import train

from hookloop.core.hook import Hook
from hookloop.dialects.imix import engine
from hookloop.errors import HookError


def test_the_optimizer_hook_clips(tmp_path):
    class Look(Hook):
        def after_update(self, run):
            norms.append(torch.nn.utils.get_total_norm([p.grad for p in run.model.parameters()]))

    norms = []
    hook = engine.hooks.OptimizerHook(grad_clip={"max_norm": 0.1, "norm_type": 2})
    train(tmp_path, hook, Look(), max_iters=1)
    assert norms[0] == pytest.approx(0.1, rel=1e-3)


def test_half_precision_is_the_trainers(tmp_path):
    with pytest.raises(HookError, match="precision='fp16'"):
        train(tmp_path, engine.hooks.Fp16OptimizerHook())


@pytest.mark.parametrize("stage", ["before_train_iter", "after_train_iter"])
def test_a_subclass_that_makes_the_update_itself_is_rejected(stage):
    mine = type("Mine", (engine.hooks.OptimizerHook,), {stage: lambda self: None})
    with pytest.raises(HookError, match=rf"Mine.{stage}: an optimizer hook of iMIX"):
        mine()


@pytest.mark.parametrize(
    ("grad_clip", "limit", "kind"),
    [
        ({"max_norm": 2, "norm_type": 1}, 2, 1.0),
        ({"max_norm": 3}, 3, 2.0),
        (SimpleNamespace(max_grad_l2_norm=4), 4, 2.0),
    ],
)
def test_the_forms_of_clipping(grad_clip, limit, kind):
    (native,) = engine.hooks.OptimizerHook(grad_clip).native_hooks()
    assert native.name == "optimizer_hook"
    assert (native.max_norm, native.norm_type) == (limit, kind)


def test_without_clipping_a_run_is_as_without_the_hook(tmp_path):
    trainer = train(tmp_path, engine.hooks.OptimizerHook())
    assert [hook.name for hook in trainer.run.hooks] == ["optimizer_hook"]
    assert trainer.run.outcome.status == "completed"


def test_half_precision_is_accepted_where_the_run_has_it(tmp_path):
    hook = engine.hooks.Fp16OptimizerHook({"max_norm": 1}, grad_scaler_config={})
    assert train(tmp_path, hook, precision="bf16").run.outcome.status == "completed"
