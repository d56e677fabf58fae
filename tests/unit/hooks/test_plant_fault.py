import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop import Hook
from hookloop.errors import HookError
from hookloop.hooks import PlantFault


class Weights(Hook):
    """Keeps the weights after each iteration."""

    def __init__(self):
        self.seen = []

    def after_train_iter(self, run):
        values = [one.detach().flatten() for one in run.model.parameters()]
        self.seen.append(torch.cat(values).clone())


def weights_with(*faults, model=None):
    seen = Weights()
    torch.manual_seed(0)
    make_trainer(
        model=model or make_model(),
        train_data=make_data(24),
        hooks=[*map(PlantFault, faults), seen],
        seed=1,
    ).train()
    return seen.seen


@pytest.mark.parametrize(
    "fault", ["flip:0.weight@3", "gradient@3", "nan@3", "skip-sample@3", "relabel@3", "lr@3"]
)
def test_a_fault_shows_in_its_iteration_and_not_before(fault):
    clean, broken = weights_with(), weights_with(fault)
    same = [torch.equal(*both) for both in zip(clean, broken, strict=True)]
    assert same == [True, True, False, False, False, False]


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("flop@3", "flip"),
        ("flip:0.wight@3", "0.weight"),
        ("dropout@3", "no dropout"),
        ("lr@x", "iteration"),
        ("lr:0.weight@3", "lr@3"),
        ("edit:metrics", "train --inject"),
        ("hook-state@3", "state"),
    ],
)
def test_a_fault_that_cannot_be_planted_is_rejected(fault, named):
    with pytest.raises(HookError, match=named):
        weights_with(fault)
