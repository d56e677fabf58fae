"""Averaged weights, natively and by the methods of subclasses."""

from types import SimpleNamespace

import pytest
import torch
from tests.mmengine.parts import Seen

from hookloop import hooks as native
from hookloop.errors import HookError
from hookloop_mmengine.hooks import EMAHook, Hook
from hookloop_mmengine.model import ExponentialMovingAverage
from hookloop_mmengine.registry import MODELS


class Look(Hook):
    priority = "LOWEST"

    def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.evaluated = float(runner.model.linear.weight.detach())


class HalfAverage(ExponentialMovingAverage):
    def avg_func(self, averaged_param, source_param, steps):
        averaged_param.lerp_(source_param, 0.5)


@pytest.fixture
def registered():
    MODELS.register_module(module=HalfAverage)
    yield
    del MODELS.module_dict["HalfAverage"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"begin_iter": 1, "begin_epoch": 1}, AssertionError, "should not be both set"),
        ({"begin_iter": -1}, AssertionError, "must not be negative"),
        ({"momentun": 0.1}, TypeError, "EMAHook has no argument 'momentun'.*'momentum'"),
        (
            {"ema_type": "ExponentialMovingAverag"},
            HookError,
            "no ema_type 'ExponentialMovingAverag'.*'ExponentialMovingAverage'",
        ),
    ],
)
def test_wrong_arguments_are_rejected_at_once(options, error, message):
    with pytest.raises(error, match=message):
        EMAHook(**options)


@pytest.mark.parametrize("options", [{"begin_epoch": 9}, {"begin_iter": 99}])
def test_an_average_that_would_never_begin_is_rejected(run, options):
    with pytest.raises(AssertionError, match="begins after the end of the training"):
        run(EMAHook(**options))


def test_a_native_hook_does_the_work():
    (hook,) = EMAHook(momentum=0.1, update_buffers=True).native_hooks()
    assert isinstance(hook, native.AverageWeights)
    assert not EMAHook().acts_itself


def expected(weights, share, begin=1):
    """Average as MMEngine does: plain copies before the first averaged step, which copies too."""
    average, is_first = weights[0], True
    for number, weight in enumerate(weights, 1):
        if number < begin or is_first:
            average, is_first = weight, number < begin
        else:
            average += share * (weight - average)
    return average


@pytest.mark.parametrize(
    ("options", "begin"), [({}, 1), ({"begin_iter": 3}, 3), ({"begin_epoch": 2}, 3)]
)
def test_a_validation_sees_the_average_and_the_training_does_not(run, options, begin):
    look, seen, plain = Look(), Seen(), Seen()
    run(EMAHook(momentum=0.5, **options), look, seen)
    run(plain)
    assert seen.weights == plain.weights
    assert look.evaluated == pytest.approx(expected(seen.weights, 0.5, begin), rel=1e-5)
    assert look.evaluated != seen.weights[-1]


@pytest.mark.parametrize("options", [{}, {"begin_iter": 3}, {"begin_epoch": 2}])
def test_a_subclass_and_the_native_hook_agree(run, options):
    class Same(EMAHook):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            super().after_train_iter(runner, batch_idx, data_batch, outputs)

    assert Same().acts_itself
    ours, theirs = Look(), Look()
    run(EMAHook(momentum=0.3, **options), ours)
    run(Same(momentum=0.3, **options), theirs)
    assert theirs.evaluated == pytest.approx(ours.evaluated, rel=1e-6)


@pytest.mark.slow
def test_a_registered_average_is_used_saved_and_resumed(run, tmp_path, registered):
    look, seen = Look(), Seen()
    run({"type": "EMAHook", "ema_type": "HalfAverage"}, look, seen, limit=2)
    average = expected(seen.weights, 0.5)
    assert look.evaluated == pytest.approx(average, rel=1e-5)
    saved = torch.load(tmp_path / "epoch_2.pth", weights_only=True)
    assert float(saved["state_dict"]["linear.weight"]) == pytest.approx(average, rel=1e-5)
    raw = saved["ema_state_dict"]["module.linear.weight"]
    assert float(raw) == pytest.approx(seen.weights[-1], rel=1e-5)
    whole, resumed = Seen(), Seen()
    run({"type": "EMAHook", "ema_type": "HalfAverage"}, resumed, look, limit=3, resume=True)
    after = look.evaluated
    run({"type": "EMAHook", "ema_type": "HalfAverage"}, whole, look, limit=3)
    assert resumed.weights == whole.weights[4:]
    assert after == pytest.approx(look.evaluated, rel=1e-5)


def test_a_class_may_be_given_as_the_type(run):
    look, seen = Look(), Seen()
    run(EMAHook(ema_type=HalfAverage), look, seen)
    assert look.evaluated == pytest.approx(expected(seen.weights, 0.5), rel=1e-5)


def test_the_file_holds_the_average_and_the_raw_weights(run, tmp_path):
    seen = Seen()
    run(EMAHook(momentum=0.5), seen)
    saved = torch.load(tmp_path / "epoch_3.pth", weights_only=True)
    average = expected(seen.weights, 0.5)
    assert float(saved["state_dict"]["linear.weight"]) == pytest.approx(average, rel=1e-5)
    raw = saved["ema_state_dict"]["module.linear.weight"]
    assert float(raw) == pytest.approx(seen.weights[-1], rel=1e-5)


def test_a_subclass_leaves_the_average_out_of_validations(run):
    class OnOrigin(EMAHook):
        def before_val_epoch(self, runner): ...
        def after_val_epoch(self, runner, metrics=None): ...

    look, seen = Look(), Seen()
    run(OnOrigin(momentum=0.5), look, seen, limit=2)
    assert look.evaluated == seen.weights[-1]


@pytest.mark.parametrize("mode", ["val", "test"])
def test_the_methods_exchange_weights_and_average(mode):
    model = torch.nn.Linear(1, 1, bias=False)
    runner = SimpleNamespace(model=model, iter=0, epoch=0)
    hook = EMAHook(momentum=0.5)
    hook.before_run(runner)
    for value in (1.0, 3.0):
        model.weight.data.fill_(value)
        hook.after_train_iter(runner, 0)
    weight = model.weight
    getattr(hook, f"before_{mode}_epoch")(runner)
    assert float(model.weight.detach()) == 2
    assert model.weight is weight
    getattr(hook, f"after_{mode}_epoch")(runner)
    assert float(model.weight.detach()) == 3


def test_loaded_weights_start_the_average():
    model = torch.nn.Linear(1, 1, bias=False)
    runner = SimpleNamespace(model=model, iter=0, epoch=0, _resume=False)
    hook = EMAHook(momentum=0.5)
    hook.before_run(runner)
    hook.after_load_checkpoint(runner, {"state_dict": {"weight": torch.full((1, 1), 7.0)}})
    assert float(hook.ema_model.module.weight) == 7
