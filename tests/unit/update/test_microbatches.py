from functools import partial
from math import nan

import numpy as np
import pytest
import torch
from tests.tiny import make_trainer
from torch import nn

from hookloop.data.batch import is_scalar
from hookloop.engine.loop import replace_batch
from hookloop.errors import HookError, ModelError
from hookloop.update.microbatches import (
    Microbatches,
    check_weight,
    is_sum,
    loss_or_zero,
    weight_in,
)
from hookloop.update.objective import forward_step, loss_in_output
from hookloop.update.update import Update

INPUTS = torch.randn(10, 3, generator=torch.Generator().manual_seed(1))
TARGETS = INPUTS.sum(1, keepdim=True) + 1


def gradient(sizes, *, weights=None, reduction="mean"):
    """The gradient over the ten samples, in microbatches of these sizes."""
    model = nn.Linear(3, 1)
    nn.init.constant_(model.weight, 0.5)
    nn.init.zeros_(model.bias)
    batches = list(zip(INPUTS.split(sizes), TARGETS.split(sizes), strict=True))
    numbers = iter(range(len(batches)))

    def step(run, batch):
        inputs, targets = batch
        loss = nn.functional.mse_loss(model(inputs), targets, reduction=reduction)
        if weights is None:
            return loss
        return {"loss": loss, "weight": weights(len(inputs), next(numbers))}

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    update = Update("", forward_step(step), loss_in_output, [optimizer], sums=reduction == "sum")
    trainer = make_trainer(model=model, optimizer=optimizer)
    group = Microbatches(update, batches)
    update.add_gradients(trainer.run, batches, group)
    assert group.close(trainer.run)
    return model.weight.grad, trainer.run.loss


@pytest.mark.parametrize("sizes", [[10], [5, 5], [4, 4, 2], [1, 9], [1] * 10])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": lambda n, number: float(n)},
        {"weights": lambda n, number: torch.tensor(float(n))},
        {"reduction": "sum"},
    ],
    ids=["samples", "numbers", "tensors", "sums"],
)
def test_microbatches_have_the_gradient_and_loss_of_the_whole_batch(sizes, options):
    whole = gradient([10], **options)
    parts = gradient(sizes, **options)
    for one, other in zip(parts, whole, strict=True):
        assert torch.allclose(one, other, rtol=1e-5)


def test_a_weight_of_zero_counts_for_nothing():
    found, _ = gradient([5, 5], weights=lambda n, number: float(number))
    errors = INPUTS[5:].sum(1, keepdim=True) * 0.5 - TARGETS[5:]  # Of the second half alone.
    assert torch.allclose(found, (2 * errors * INPUTS[5:]).mean(0), rtol=1e-5)


def run_group(outputs, sizes):
    """Put what a step returns for microbatches of these sizes into a group, and close it."""
    model = nn.Linear(3, 1)
    batches = [torch.zeros(size, 3) for size in sizes]
    returned = iter(outputs)

    def step(run, batch):
        found = next(returned)
        return found and {"loss": model(batch).mean(), **found}

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    update = Update("", forward_step(step), loss_in_output, [optimizer])
    trainer = make_trainer(model=model, optimizer=optimizer)
    group = Microbatches(update, batches)
    update.add_gradients(trainer.run, batches, group)
    return group.close(trainer.run), trainer.run


def test_numbers_in_the_output_are_averaged_by_weight():
    outputs = [{"accuracy": 1.0, "scores": "first"}, {"accuracy": 0.0, "scores": "last"}]
    is_made, run = run_group(outputs, (3, 1))
    assert is_made and run.metrics.latest("train/accuracy") == 0.75
    # Hooks see the last microbatch.
    assert (run.output["accuracy"], run.output["scores"]) == (0.0, "last")


def test_a_group_without_a_loss_makes_no_update():
    assert run_group([None, None], (2, 2))[0] is False
    assert run_group([None, {"a": 1}], (2, 2))[0] is True


def test_weights_for_some_microbatches_only_are_rejected():
    with pytest.raises(ModelError, match="for some microbatches of an iteration and not for"):
        run_group([{"weight": 2.0}, {"a": 1}], (2, 2))


def test_one_batch_can_be_replaced_and_several_cannot():
    batches = [1]
    replace_batch(batches, 2)
    assert batches == [2]
    with pytest.raises(HookError, match="which fires once for 2 microbatches"):
        replace_batch([1, 2], 3)


def test_a_loss_that_sums_is_recognized():
    assert is_sum(nn.MSELoss(reduction="sum"))
    assert is_sum(partial(nn.functional.mse_loss, reduction="sum"))
    assert is_sum(partial(nn.MSELoss(reduction="sum"), size_average=None))
    assert not is_sum(nn.MSELoss()) and not is_sum(nn.functional.mse_loss)


@pytest.mark.parametrize("weight", [-1.0, nan, float("inf"), "3", None, True, torch.ones(2), [1]])
def test_what_is_not_a_weight_is_rejected(weight):
    with pytest.raises(ModelError, match="it must be one number"):
        check_weight(weight)


def test_weights_of_every_kind_are_taken():
    assert check_weight(3) == check_weight(np.int64(3)) == 3.0
    weight = check_weight(torch.ones(1, 1, requires_grad=True))
    assert weight.shape == () and not weight.requires_grad
    assert weight_in({"weight": 2}) == 2.0
    assert weight_in({"loss": 2}) is None and weight_in(torch.ones(1)) is None


@pytest.mark.parametrize("as_tensor", [False, True])
def test_a_mean_over_nothing_is_zero(as_tensor):
    def weight(value):
        return torch.tensor(value) if as_tensor else value

    assert loss_or_zero(torch.tensor(nan), weight(0.0)).item() == 0.0
    assert loss_or_zero(torch.tensor(2.5), weight(3.0)).item() == 2.5


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, True),
        (0.5, True),
        (np.float32(1), True),
        (torch.tensor(1), True),
        (torch.ones(1), False),
        (True, False),
        ("1", False),
    ],
)
def test_one_number_is_a_scalar(value, expected):
    assert is_scalar(value) is expected
