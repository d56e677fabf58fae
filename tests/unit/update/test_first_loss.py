import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional

from hookloop import LossWarning, Trainer
from hookloop.errors import ModelError

INPUTS = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
NUMBERS = INPUTS.sum(1)
LABELS = (NUMBERS > 0).long()
ONE_HOT = functional.one_hot(LABELS, 2).float()
KL = nn.KLDivLoss(reduction="batchmean")


def train(model, targets, *, iters=2, **how):
    return Trainer(
        model,
        train_data=[(INPUTS[:8], targets[:8]), (INPUTS[8:], targets[8:])],
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        max_iters=iters,
        default_hooks=False,
        **how,
    ).train()


def warned(model, targets, **how):
    """Return the warnings of a training about its loss."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(model, targets, **how)
    return [one for one in caught if one.category is LossWarning]


def by_step(run, batch):
    return functional.mse_loss(run.model(batch[0]), batch[1])


@pytest.mark.parametrize(
    "how",
    [
        {"loss": nn.MSELoss()},
        {"loss": functional.l1_loss},
        {"loss": nn.SmoothL1Loss()},
        {"loss": functional.huber_loss},
        {"loss": nn.PoissonNLLLoss()},
        {"loss": lambda outputs, targets: ((outputs - targets) ** 2).mean()},
        {"step": by_step},
    ],
)
def test_outputs_that_are_broadcast_against_targets_are_reported_once(how):
    (warning,) = warned(nn.Linear(4, 1), NUMBERS, iters=4, **how)
    assert "[8, 1]" in str(warning.message)
    assert warning.filename == __file__


def accuracy(outputs, targets):
    return ((outputs > 0) == (targets > 0)).float().mean()


def head_of_zeros():
    """A head that gives every sample its bias, which sums to 1 over the classes."""
    head = nn.Linear(4, 2)
    nn.init.zeros_(head.weight)
    nn.init.constant_(head.bias, 0.5)
    return head


def squeezed(outputs, targets):
    return accuracy(outputs.squeeze(-1), targets)


@pytest.mark.parametrize(
    ("metric", "is_reported"),
    [
        (accuracy, True),
        (lambda outputs, targets: (outputs - targets).abs().mean(), True),
        (nn.L1Loss(), True),
        (squeezed, False),
        (lambda outputs, targets: (outputs.T - outputs).abs().mean(), False),
    ],
)
def test_a_metric_that_broadcasts_is_reported_once(metric, is_reported):
    found = warned(
        nn.Linear(4, 1),
        NUMBERS,
        loss=lambda outputs, targets: functional.mse_loss(outputs.squeeze(-1), targets),
        metrics={"right": metric},
        val_data=[(INPUTS, NUMBERS), (INPUTS, NUMBERS)],
        val_every="1 iter",
    )
    assert ["'right'" in str(one.message) for one in found] == [True] * is_reported


def right_ones(outputs, targets):
    return (outputs.argmax(1) == targets).sum()


@pytest.mark.parametrize(
    ("metric", "is_reported"),
    [
        (right_ones, True),
        (lambda outputs, targets: int(right_ones(outputs, targets)), True),
        (lambda outputs, targets: right_ones(outputs, targets) / len(targets), False),
        (lambda outputs, targets: bool(right_ones(outputs, targets)), False),
    ],
)
def test_a_metric_that_counts_is_reported_once(metric, is_reported):
    found = warned(
        nn.Linear(4, 2),
        LABELS,
        loss=functional.cross_entropy,
        metrics={"right": metric},
        val_data=[(INPUTS, LABELS), (INPUTS, LABELS)],
        val_every="1 iter",
    )
    assert ["'right' returned a whole number" in str(one.message) for one in found] == [
        True
    ] * is_reported


def test_the_line_of_the_step_is_named():
    (warning,) = warned(nn.Linear(4, 1), NUMBERS, step=by_step)
    assert warning.lineno == by_step.__code__.co_firstlineno + 1


def test_it_can_be_made_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", LossWarning)
        with pytest.raises(LossWarning):
            train(nn.Linear(4, 1), NUMBERS, loss=nn.MSELoss())


@pytest.mark.parametrize(
    ("model", "targets", "loss"),
    [
        (nn.Sequential(nn.Linear(4, 2), nn.Softmax(1)), LABELS, nn.CrossEntropyLoss()),
        (nn.Sequential(head_of_zeros(), nn.Softmax(1)), LABELS, nn.CrossEntropyLoss()),
        (nn.Sequential(nn.Linear(4, 2), nn.Sigmoid()), LABELS, nn.CrossEntropyLoss()),
        (nn.Linear(4, 1), LABELS * 0, nn.CrossEntropyLoss()),
        (nn.Linear(4, 2), LABELS, nn.NLLLoss()),
        (nn.Sequential(nn.Linear(4, 2), nn.Softmax(1)), ONE_HOT, KL),
        (
            nn.Sequential(nn.Linear(4, 1), nn.Sigmoid(), nn.Flatten(0)),
            LABELS.float(),
            nn.BCEWithLogitsLoss(),
        ),
    ],
)
def test_outputs_of_the_wrong_kind_are_reported_once(model, targets, loss):
    assert len(warned(model, targets, loss=loss, iters=4)) == 1


@pytest.mark.parametrize(
    ("model", "targets", "loss"),
    [
        (nn.Linear(4, 1), NUMBERS[:, None], nn.MSELoss()),
        (nn.Linear(4, 2), LABELS, nn.CrossEntropyLoss()),
        (nn.Sequential(nn.Linear(4, 2), nn.LogSoftmax(1)), LABELS, nn.CrossEntropyLoss()),
        (head_of_zeros(), LABELS, nn.CrossEntropyLoss()),
        (nn.Sequential(nn.Linear(4, 2), nn.LogSoftmax(1)), LABELS, nn.NLLLoss()),
        (nn.Sequential(nn.Linear(4, 2), nn.LogSoftmax(1)), ONE_HOT, KL),
        (nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), LABELS.float(), nn.BCEWithLogitsLoss()),
    ],
)
def test_what_is_right_is_not_reported(model, targets, loss):
    assert not warned(model, targets, loss=loss)


def test_as_many_learned_centers_as_samples_are_not_reported():
    class Centers(nn.Module):
        def __init__(self):
            super().__init__()
            self.centers = nn.Parameter(torch.linspace(-1, 1, 8))

    def step(run, batch):
        return (batch[1] - run.model.centers).abs().min(1).values.mean()

    assert not warned(Centers(), NUMBERS[:, None], step=step)


def test_later_iterations_call_what_was_given():
    seen = []

    def loss(outputs, targets):
        seen.append(len(torch.overrides._get_current_function_mode_stack()))
        return functional.cross_entropy(outputs, targets)

    train(nn.Linear(4, 2), LABELS, loss=loss, iters=4)
    assert seen == [1, 0, 0, 0]


@pytest.mark.parametrize("returned", ["loss", "detached", "number", "mapping", "nothing"])
def test_a_step_that_calls_backward_is_rejected(returned):
    def step(run, batch):
        loss = functional.cross_entropy(run.model(batch[0]), batch[1])
        loss.backward(retain_graph=True)  # Without an error of torch, the gradient would be double.
        return {
            "loss": loss,
            "detached": loss.detach(),
            "number": loss.item(),
            "mapping": {"loss": loss},
            "nothing": None,
        }[returned]

    with pytest.raises(ModelError, match=r"backward\(\).*\(test_first_loss.py"):
        train(nn.Linear(4, 2), LABELS, step=step)


def test_a_step_may_call_backward_for_something_else():
    def step(run, batch):
        inputs = batch[0].clone().requires_grad_()
        functional.cross_entropy(run.model(inputs), batch[1]).backward()
        run.model.zero_grad()
        return functional.cross_entropy(run.model(inputs + 0.1 * inputs.grad.sign()), batch[1])

    assert train(nn.Linear(4, 2), LABELS, step=step).status == "completed"


def test_a_training_that_is_continued_is_not_looked_at_again():
    seen = []

    def loss(outputs, targets):
        seen.append(len(torch.overrides._get_current_function_mode_stack()))
        return functional.cross_entropy(outputs, targets)

    model = nn.Linear(4, 2)
    trainer = Trainer(
        model,
        train_data=[(INPUTS, LABELS)],
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        loss=loss,
        max_epochs=2,
        default_hooks=False,
    )
    trainer.train()
    trainer.train(max_epochs=4)
    assert seen == [1, 0, 0, 0]


def test_it_does_not_change_what_a_frozen_teacher_computes():
    def build():
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        teacher = nn.TransformerEncoder(layer, 2).eval().requires_grad_(False)
        return teacher, nn.Linear(16, 16), torch.randn(8, 5, 16)

    def loss_of(teacher, model, batch):
        with torch.no_grad():
            targets = teacher(batch)
        return functional.mse_loss(model(batch), targets)

    teacher, model, batch = build()
    Trainer(
        model,
        train_data=[batch],
        step=lambda run, batch: loss_of(teacher, run.model, batch),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_iters=1,
        default_hooks=False,
    ).train()
    teacher, alone, batch = build()
    loss_of(teacher, alone, batch).backward()
    torch.optim.SGD(alone.parameters(), lr=0.1).step()
    assert torch.equal(model.weight, alone.weight)
