from functools import partial
from math import nan

import numpy as np
import pytest
import torch
from torch import nn

from hookloop.data.microbatches import (
    Microbatches,
    check_weight,
    is_scalar,
    is_sum,
    loss_or_zero,
    replace_batch,
    weight_in,
)
from hookloop.errors import HookError, ModelError

INPUTS = torch.randn(10, 3, generator=torch.Generator().manual_seed(1))
TARGETS = INPUTS.sum(1, keepdim=True) + 1


def gradient(sizes, *, weights=None, reduction="mean"):
    """The gradient over the ten samples, in microbatches of these sizes."""
    model = nn.Linear(3, 1)
    nn.init.constant_(model.weight, 0.5)
    nn.init.zeros_(model.bias)
    batches = list(zip(INPUTS.split(sizes), TARGETS.split(sizes), strict=True))
    group = Microbatches(batches, sums=reduction == "sum")
    for number, (inputs, targets) in enumerate(batches):
        loss = nn.functional.mse_loss(model(inputs), targets, reduction=reduction)
        counted = None if weights is None else weights(len(inputs), number)
        group.share(loss, counted, (inputs, targets), None).backward()
    group.correct(model.parameters())
    return model.weight.grad, group.loss()


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


def test_numbers_in_the_output_are_averaged_by_weight():
    group = Microbatches([torch.zeros(3, 1), torch.zeros(1, 1)])
    for size, accuracy in ((3, 1.0), (1, 0.0)):
        output = {"accuracy": accuracy, "scores": torch.zeros(size, 2)}
        group.share(torch.tensor(1.0), None, torch.zeros(size, 1), output)
    whole = group.output({"accuracy": 0.0, "scores": "last"})
    assert (float(whole["accuracy"]), whole["scores"]) == (0.75, "last")
    assert group.output("not a mapping") == "not a mapping"


def test_a_group_without_a_loss_is_empty():
    group = Microbatches([torch.zeros(2)])
    assert group.is_empty
    group.share(torch.tensor(1.0), None, torch.zeros(2), None)
    assert not group.is_empty


def test_weights_for_some_microbatches_only_are_rejected():
    group = Microbatches([torch.zeros(2), torch.zeros(2)])
    group.share(torch.tensor(1.0), 2.0, torch.zeros(2), None)
    with pytest.raises(ModelError, match="for some microbatches of an iteration and not for"):
        group.share(torch.tensor(1.0), None, torch.zeros(2), None)


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
