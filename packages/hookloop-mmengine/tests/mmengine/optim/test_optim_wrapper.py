"""Accumulation, clipping, mixed precision and several optimizers."""

from contextlib import contextmanager

import pytest
import torch
from torch import nn

from hookloop_mmengine.logging import MessageHub
from hookloop_mmengine.optim import AmpOptimWrapper, OptimWrapper, OptimWrapperDict


def make(lr=0.1, kind=OptimWrapper, **options):
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return model, kind(optimizer=optimizer, **options)


def train(model, wrapper, losses):
    """Makes one update per factor; returns the weight after each."""
    weights = []
    for factor in losses:
        wrapper.update_params(model.weight.sum() * factor)
        weights.append(round(float(model.weight.detach()), 6))
    return weights


def test_each_loss_is_a_step():
    model, wrapper = make()
    assert train(model, wrapper, [1, 2]) == [0.9, 0.7]
    assert wrapper.inner_count == 2
    assert model.weight.grad is None


def test_losses_are_averaged_over_a_step_and_the_rest_is_a_step():
    model, wrapper = make(accumulative_counts=2)
    wrapper.initialize_count_status(model, 0, 5)
    assert train(model, wrapper, [1, 3, 2, 2, 4]) == [1, 0.8, 0.8, 0.6, 0.2]


def test_without_a_total_number_the_rest_waits():
    model, wrapper = make(accumulative_counts=2)
    assert train(model, wrapper, [1, 1, 1]) == [1, 0.9, 0.9]


def test_a_resume_between_two_steps_is_a_warning(caplog):
    model, wrapper = make(accumulative_counts=2)
    wrapper.initialize_count_status(model, 2, 6)
    assert caplog.text == ""
    wrapper.initialize_count_status(model, 3, 6)
    assert "resumes between two steps" in caplog.text


def test_gradients_are_synchronized_only_when_a_step_is_due():
    calls = []

    class Parallel(nn.Linear):
        @contextmanager
        def no_sync(self):
            calls.append("no_sync")
            yield

    model = Parallel(1, 1, bias=False)
    wrapper = OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1), accumulative_counts=2)
    for _ in range(4):
        with wrapper.optim_context(model):
            loss = model(torch.ones(1))
        wrapper.update_params(loss.sum())
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("clip", "weight"),
    [
        ({"max_norm": 1.0}, 0.9),
        ({"max_norm": 100.0}, 0.0),
        ({"type": "value", "clip_value": 2.0}, 0.8),
        ({"type": "norm", "max_norm": 2.0, "norm_type": 1}, 0.8),
    ],
    ids=str,
)
def test_gradients_are_clipped(clip, weight):
    hub = MessageHub.get_instance(f"clip {clip}")
    model, wrapper = make(clip_grad=clip)
    (found,) = train(model, wrapper, [10])
    assert found == pytest.approx(weight, abs=1e-5)
    if clip.get("type") != "value":
        assert hub.get_scalar("train/grad_norm").current() == pytest.approx(10)
    else:
        assert hub.log_scalars == {}
    MessageHub._instance_dict.pop(f"clip {clip}")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"accumulative_counts": 0}, AssertionError, "at least greater than or equal to 1"),
        ({"clip_grad": {}}, AssertionError, "arguments of torch's clipping"),
        ({"clip_grad": {"type": "x"}}, ValueError, "should be 'norm' or 'value', not x"),
    ],
)
def test_wrong_arguments_are_rejected(options, error, message):
    with pytest.raises(error, match=message):
        make(**options)
    with pytest.raises(AssertionError, match="must be a torch.optim.Optimizer"):
        OptimWrapper("sgd")


def test_several_groups_show_the_rate_that_was_set():
    model = nn.Linear(1, 1)
    groups = [{"params": [model.weight], "lr": 0.01}, {"params": [model.bias], "momentum": 0.5}]
    wrapper = OptimWrapper(torch.optim.SGD(groups, lr=0.1, momentum=0.9))
    assert wrapper.get_lr() == {"lr": [0.01, 0.1], "base_lr": [0.1]}
    assert wrapper.get_momentum() == {"momentum": [0.9, 0.5], "base_momentum": [0.9]}
    assert len(wrapper.param_groups) == 3


@pytest.mark.parametrize(
    ("kind", "options", "momentum"),
    [
        (torch.optim.SGD, {"momentum": 0.9}, 0.9),
        (torch.optim.SGD, {}, 0),
        (torch.optim.Adam, {"betas": (0.8, 0.99)}, 0.8),
        (torch.optim.Adagrad, {}, 0),
    ],
)
def test_momentum_of_each_kind_of_optimizer(kind, options, momentum):
    wrapper = OptimWrapper(kind(nn.Linear(1, 1).parameters(), lr=0.1, **options))
    assert wrapper.get_momentum() == {"momentum": [momentum]}
    assert wrapper.defaults["lr"] == 0.1


def test_its_state_is_that_of_the_optimizer():
    model = nn.Linear(1, 1)
    groups = [{"params": [model.weight], "lr": 0.01}, {"params": [model.bias]}]
    wrapper = OptimWrapper(torch.optim.Adam(groups, lr=0.1))
    wrapper.update_params(model(torch.ones(1)).sum())
    wrapper.base_param_settings["lr"] = 0.5
    other = OptimWrapper(torch.optim.Adam([dict(group) for group in groups], lr=0.2))
    other.load_state_dict(wrapper.state_dict())
    assert other.get_lr() == {"lr": [0.01, 0.1], "base_lr": [0.5]}
    assert float(other.optimizer.state[model.weight]["step"]) == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", torch.bfloat16, None])
def test_forward_is_in_mixed_precision(dtype):
    model, wrapper = make(kind=AmpOptimWrapper, dtype=dtype)
    wanted = {"bfloat16": torch.bfloat16, torch.bfloat16: torch.bfloat16}.get(dtype, torch.float16)
    with wrapper.optim_context(model):
        output = model(torch.ones(1, 1))
    assert output.dtype == wanted
    assert model(torch.ones(1, 1)).dtype == torch.float32


@pytest.mark.parametrize(
    ("scale", "wanted"), [("dynamic", 65536), (8, 8), ({"init_scale": 4.0}, 4)]
)
def test_the_loss_is_scaled_in_float16(scale, wanted):
    model, wrapper = make(kind=AmpOptimWrapper, loss_scale=scale, dtype="float16")
    assert wrapper.loss_scaler.get_scale() == wanted
    assert train(model, wrapper, [1, 2]) == [0.9, 0.7]
    assert wrapper.state_dict()["loss_scaler"]["scale"] == wanted


def test_clipping_sees_gradients_that_are_not_scaled():
    model, wrapper = make(kind=AmpOptimWrapper, clip_grad={"max_norm": 1.0})
    assert train(model, wrapper, [10]) == [pytest.approx(0.9, abs=1e-5)]


def test_an_overflow_skips_the_step_and_lowers_the_scale():
    model, wrapper = make(kind=AmpOptimWrapper, loss_scale={"init_scale": 8.0})
    assert train(model, wrapper, [float("inf"), 1]) == [1, 0.9]
    assert wrapper.loss_scaler.get_scale() == 4


def test_the_state_of_the_scaler_is_restored():
    _, wrapper = make(kind=AmpOptimWrapper, loss_scale=8)
    _, other = make(kind=AmpOptimWrapper)
    other.load_state_dict(wrapper.state_dict())
    assert other.loss_scaler.get_scale() == 8


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"use_fsdp": True}, NotImplementedError),
        ({"dtype": "float64"}, AssertionError),
        ({"loss_scale": "static"}, TypeError),
    ],
)
def test_wrong_arguments_of_mixed_precision_are_rejected(options, error):
    with pytest.raises(error):
        make(kind=AmpOptimWrapper, **options)


@pytest.fixture
def several():
    one, two = (make(lr=lr)[1] for lr in (0.1, 0.2))
    groups = [{"params": [nn.Parameter(torch.ones(1))], "lr": 0.3} for _ in range(2)]
    three = OptimWrapper(torch.optim.SGD(groups, lr=0.4))
    return OptimWrapperDict(one=one, two=two, three=three)


def test_several_optimizers_by_name(several):
    assert list(several.keys()) == ["one", "two", "three"]
    assert len(several) == len(list(several.values())) == 3
    assert "one" in several
    assert several["two"].get_lr() == {"lr": [0.2]}
    assert several.get_lr() == {
        "one.lr": [0.1], "two.lr": [0.2], "three.lr": [0.3, 0.3], "three.base_lr": [0.4],
    }  # fmt: skip
    assert several.get_momentum()["one.momentum"] == [0]
    assert several.param_groups["two"][0]["lr"] == 0.2


def test_several_optimizers_are_updated_one_by_one(several):
    for method in (several.update_params, several.backward, several.step, several.zero_grad):
        with pytest.raises(NotImplementedError, match="one by one"):
            method()
    with pytest.raises(NotImplementedError), several.optim_context(None):
        pass
    assert several.initialize_count_status(None, 0, 1) is None


def test_the_state_of_several_optimizers(several):
    state = several.state_dict()
    several["one"].optimizer.param_groups[0]["lr"] = 5
    several.load_state_dict(state)
    assert several["one"].get_lr() == {"lr": [0.1]}
    with pytest.raises(AssertionError, match="Mismatched `state_dict`! cannot found four"):
        several.load_state_dict({"four": {}})
    with pytest.raises(AssertionError, match="`x` must be an OptimWrapper"):
        OptimWrapperDict(x=3)
