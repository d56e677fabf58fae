import re

import pytest
import torch
from torch import nn

from hookloop import Trainer

SAMPLES = 8
INPUTS = torch.randn(SAMPLES, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(SAMPLES) % 2
PICTURES = torch.zeros(SAMPLES, 1, 4, 4)
CROSS_ENTROPY = nn.CrossEntropyLoss()


def swapped(targets, outputs):
    return CROSS_ENTROPY(outputs, targets)


def logistic():
    return nn.Linear(4, 1)


@pytest.mark.parametrize(
    ("model", "inputs", "targets", "loss", "advice"),
    [
        (
            nn.Linear(4, 2),
            INPUTS,
            LABELS + 1,
            CROSS_ENTROPY,
            "labels are 0 to 1.* 1 to 2.*subtract",
        ),
        (nn.Linear(4, 2), INPUTS, LABELS - 1, CROSS_ENTROPY, "ignore_index=-1"),
        (nn.Linear(4, 2), INPUTS, LABELS.int(), CROSS_ENTROPY, r"targets\.long\(\)"),
        (nn.Linear(4, 2), INPUTS, LABELS[:, None], CROSS_ENTROPY, r"squeeze\(1\)"),
        (nn.Linear(4, 2), INPUTS, torch.eye(2).long()[LABELS], CROSS_ENTROPY, r"argmax\(1\)"),
        (nn.Linear(5, 2), INPUTS, LABELS, CROSS_ENTROPY, r"Linear\(4, 2\)"),
        (nn.Linear(16, 2), PICTURES, LABELS, CROSS_ENTROPY, r"nn\.Flatten\(\)"),
        (nn.Linear(4, 2), INPUTS.double(), LABELS, CROSS_ENTROPY, r"inputs\.float\(\)"),
        (nn.Linear(4, 2).half(), INPUTS, LABELS, CROSS_ENTROPY, r"without \.half\(\)"),
        (nn.Linear(4, 2), PICTURES.byte(), LABELS, CROSS_ENTROPY, "/ 255"),
        (nn.Conv2d(3, 2, 1), torch.zeros(8, 5, 5, 3), LABELS, CROSS_ENTROPY, "permute"),
        (nn.Embedding(3, 2), LABELS + 2, LABELS, CROSS_ENTROPY, "4 rows"),
        (logistic(), INPUTS, LABELS.float(), nn.BCEWithLogitsLoss(), "squeeze"),
        (logistic(), INPUTS, LABELS[:, None], nn.BCEWithLogitsLoss(), r"targets\.float\(\)"),
        (logistic(), INPUTS, LABELS, nn.BCEWithLogitsLoss(), r"squeeze.* with targets\.float\(\)"),
        (nn.Linear(4, 2), INPUTS, LABELS, swapped, "order"),
        (
            nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)),
            INPUTS[:1],
            LABELS[:1],
            CROSS_ENTROPY,
            "drop_last",
        ),
        (logistic(), INPUTS * 9, LABELS.float()[:, None], nn.BCELoss(), "BCEWithLogitsLoss"),
    ],
)
def test_what_torch_rejects_is_explained(model, inputs, targets, loss, advice):
    trainer = Trainer(
        model,
        train_data=[(inputs, targets)],
        loss=loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_iters=1,
        default_hooks=False,
    )
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of several types, by torch
        trainer.train()
    (note,) = [one for one in caught.value.__notes__ if one.startswith("To fix it")]
    assert re.search(advice, note), note


def test_an_unknown_error_gets_no_advice():
    model = nn.Linear(4, 2)

    def loss(outputs, targets):
        raise ZeroDivisionError("of the user's own")

    trainer = Trainer(
        model,
        train_data=[(INPUTS, LABELS)],
        loss=loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_iters=1,
        default_hooks=False,
    )
    with pytest.raises(ZeroDivisionError) as caught:
        trainer.train()
    assert not any(one.startswith("To fix it") for one in caught.value.__notes__)


@pytest.mark.parametrize(
    "batch", [(INPUTS, LABELS), {"input": INPUTS, "labels": LABELS}], ids=["pair", "mapping"]
)
def test_a_loss_that_was_forgotten_is_asked_for(batch):
    model = nn.Linear(4, 2)
    trainer = Trainer(
        model,
        train_data=[batch],
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_iters=1,
        default_hooks=False,
    )
    with pytest.raises(TypeError) as caught:
        trainer.train()
    assert "give loss=" in caught.value.__notes__[-1]
