"""How the updates of an iteration are built from loss=, step= and the optimizers."""

import pytest
import torch
from tests.tiny import make_model, make_trainer
from torch import nn

from hookloop.errors import ModelError
from hookloop.update.application import make_scaler
from hookloop.update.assemble import make_updates
from hookloop.update.objective import autocast, forward_all, forward_inputs, loss_in_output
from hookloop.update.update import Update

CPU = torch.device("cpu")


def optimizers(*names):
    model = make_model()
    return {name: torch.optim.SGD(model.parameters(), lr=0.1) for name in names or ("default",)}


def step(run, batch):
    return run.model(batch[0]).mean()


def test_a_loss_makes_one_update_of_all_optimizers():
    both = optimizers("one", "two")
    (update,) = make_updates(nn.functional.mse_loss, None, both)
    assert (update.loss_name, update.forward) == ("loss", forward_inputs)
    assert update.optimizers == tuple(both.values())
    assert not update.returns_loss and not update.sums


def test_a_step_or_a_model_that_returns_its_loss_makes_one_update():
    for given, forward in ((step, None), (None, forward_all)):
        (update,) = make_updates(None, given, optimizers())
        assert update.returns_loss and update.loss_of is loss_in_output
        assert forward is None or update.forward is forward


def test_steps_by_name_make_an_update_each_in_their_order():
    both = optimizers("one", "two", "three")
    updates = make_updates(None, {"two": step, "one": step}, both)
    assert [update.loss_name for update in updates] == ["two_loss", "one_loss"]
    assert [update.optimizers for update in updates] == [(both["two"],), (both["one"],)]


def test_an_update_of_ones_own_is_taken_and_clips_and_scales_by_itself():
    own = Update("", forward_inputs, loss_in_output, optimizers().values(), clip_norm=3.0)
    (update,) = make_updates(
        None, own, optimizers(), clip_norm=1.0, scaler=make_scaler("fp16", CPU)
    )
    assert update is own
    assert (own.clip_norm, own.scaler) == (3.0, None)


@pytest.mark.parametrize(
    ("loss", "sums"),
    [
        (nn.MSELoss(reduction="sum"), True),
        (nn.MSELoss(), False),
        (nn.functional.mse_loss, False),
    ],
)
def test_a_loss_that_adds_up_is_known(loss, sums):
    assert make_updates(loss, None, optimizers())[0].sums is sums


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": nn.MSELoss(), "step": step}, "both given"),
        ({"step": {"one": step}}, "step= names one, but the optimizers are default"),
        ({"step": {"default": step, "b": step, "a": step}}, "step= names a, b"),
        ({"loss": nn.MSELoss(), "clip_norm": 0}, "clip_norm must be above 0, not 0"),
        ({"loss": nn.MSELoss(), "clip_norm": -1.0}, "clip_norm must be above 0"),
        ({"loss": nn.MSELoss(), "clip_norm": float("nan")}, "clip_norm must be above 0"),
    ],
)
def test_what_does_not_fit_together_is_rejected(given, message):
    options = {"loss": None, "step": None} | given
    with pytest.raises(ModelError, match=message):
        make_updates(options.pop("loss"), options.pop("step"), optimizers(), **options)


def test_half_precision_alone_has_a_scaler():
    assert make_scaler("fp32", CPU) is make_scaler("bf16", CPU) is None
    assert isinstance(make_scaler("fp16", CPU), torch.amp.GradScaler)
    with pytest.raises(ModelError, match="'bf16'"):
        make_scaler("bf6", CPU)


@pytest.mark.parametrize(
    ("precision", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_lower_precision_has_a_context_that_can_be_entered_again_and_again(precision, dtype):
    context = autocast(precision, CPU)
    layer, inputs = nn.Linear(2, 2), torch.ones(1, 2)
    for _ in range(2):
        with context:
            assert layer(inputs).dtype is dtype
        assert layer(inputs).dtype is torch.float32
    assert autocast("fp32", CPU) is None


def test_clipping_holds_for_every_update():
    model = nn.ModuleDict({"one": nn.Linear(4, 1), "two": nn.Linear(4, 1)})
    norms = []

    def step_of(name):
        return lambda run, batch: (100 * run.model[name](batch[0]) - batch[1]).square().mean()

    trainer = make_trainer(
        model=model,
        step={name: step_of(name) for name in model},
        optimizer={name: torch.optim.SGD(one.parameters(), lr=0.1) for name, one in model.items()},
        clip_norm=0.5,
    )

    @trainer.on("after_update")
    def look(run):
        for part in model.values():
            grads = [weight.grad for weight in part.parameters()]
            if all(grad is not None for grad in grads):
                norms.append(torch.nn.utils.get_total_norm(grads).item())

    trainer.train()
    assert len(norms) > 6 and max(norms) == pytest.approx(0.5, rel=1e-4)
