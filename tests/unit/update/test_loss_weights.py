import copy
from functools import partial

import pytest
import torch
from tests.ranks import on_ranks
from torch import nn
from torch.nn import functional

from hookloop import LossWarning, Trainer
from hookloop.update.loss_weights import counter_of

CLASSES, IGNORED = 7, 0
made = torch.Generator().manual_seed(0)
INPUTS = torch.randn(12, 5, 4, generator=made)
TARGETS = torch.randint(1, CLASSES, (12, 5), generator=made)
TARGETS[:4, 1:] = TARGETS[4:6] = TARGETS[8:11, 2:] = IGNORED  # One microbatch has no target at all.
PARTS = [slice(4), slice(4, 6), slice(6, 12)]
WEIGHTS = torch.rand(CLASSES, generator=made) + 0.2


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, CLASSES)

    def forward(self, inputs):
        return self.head(inputs).transpose(1, 2)


class Doubled(nn.CrossEntropyLoss):
    def forward(self, outputs, targets):
        return 2 * super().forward(outputs, targets)


def passes_it(outputs, targets):
    return functional.cross_entropy(outputs, targets, ignore_index=IGNORED)


LOSSES = [
    nn.CrossEntropyLoss(ignore_index=IGNORED),
    nn.CrossEntropyLoss(weight=WEIGHTS, ignore_index=IGNORED, label_smoothing=0.1),
    nn.CrossEntropyLoss(weight=WEIGHTS),
    partial(functional.cross_entropy, ignore_index=IGNORED, weight=WEIGHTS),
    functional.cross_entropy,
]


@pytest.mark.parametrize("loss", LOSSES)
def test_microbatches_count_for_what_the_loss_is_a_mean_of(loss):
    torch.manual_seed(0)
    model = Tokens()
    whole = copy.deepcopy(model)
    loss(whole(INPUTS), TARGETS).backward()
    torch.optim.SGD(whole.parameters(), lr=0.1).step()
    batches = [(INPUTS[part], TARGETS[part]) for part in PARTS]
    outcome = Trainer(
        model,
        train_data=batches,
        val_data=batches,
        accumulate=3,
        loss=loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
        default_hooks=False,
    ).train()
    torch.testing.assert_close(model.state_dict(), whole.state_dict())
    with torch.no_grad():
        expected = loss(whole(INPUTS), TARGETS).item()
    assert outcome.metrics["val/loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_count_for_what_the_loss_is_a_mean_of(size):
    def train():
        torch.manual_seed(0)
        model = Tokens()
        Trainer(
            model,
            train_data=[(INPUTS, TARGETS)],
            loss=LOSSES[0],
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            max_epochs=1,
            device="cpu",
            default_hooks=False,
        ).train()
        return {name: one.detach() for name, one in model.state_dict().items()}

    alone = train()
    for weights in on_ranks(train, size):
        torch.testing.assert_close(weights, alone)


@pytest.mark.parametrize(
    ("loss", "is_reported"),
    [
        (passes_it, True),
        (Doubled(ignore_index=IGNORED), True),
        (Doubled(), False),
        (LOSSES[0], False),
        (lambda outputs, targets: 2 * functional.cross_entropy(outputs, targets), False),
    ],
)
def test_a_loss_that_ignores_in_its_own_way_is_reported_before_training(loss, is_reported, caplog):
    model = Tokens()
    Trainer(
        model,
        train_data=[(INPUTS, TARGETS)],
        accumulate=2,
        loss=loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
        default_hooks=False,
    ).train()
    assert ("how much that leaves of a batch" in caplog.text) == is_reported


def test_a_loss_that_hides_what_it_ignores_is_reported_when_it_is_called():
    def hidden(outputs, targets):
        return passes_it(outputs, targets)

    model = Tokens()
    trainer = Trainer(
        model,
        train_data=[(INPUTS, TARGETS)],
        accumulate=2,
        loss=hidden,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
        default_hooks=False,
    )
    with pytest.warns(LossWarning, match="leaves out or weights"):
        trainer.train()


def test_sums_and_other_losses_count_nothing():
    assert counter_of(nn.CrossEntropyLoss(reduction="sum")) is None
    assert counter_of(partial(functional.cross_entropy, reduction="sum")) is None
    assert counter_of(nn.MSELoss()) is None
