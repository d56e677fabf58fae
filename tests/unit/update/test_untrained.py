"""Parameters without an optimizer, and rates of 0, are reported after the first update."""

import logging

import pytest
import torch
from tests.tiny import make_model, make_trainer
from torch import nn
from torch.optim.lr_scheduler import LambdaLR


def warned(caplog, **how):
    with caplog.at_level(logging.WARNING, "hookloop"):
        trainer = make_trainer(max_iters=2, **how)
        trainer.train()
    return [one.getMessage() for one in caplog.records]


class Center(nn.Module):
    def __init__(self, *, is_trained=True):
        super().__init__()
        self.at = nn.Parameter(torch.zeros(1), requires_grad=is_trained)

    def forward(self, outputs, targets):
        return (outputs - targets - self.at).square().mean()


def test_parameters_of_the_model_that_no_optimizer_has_are_named(caplog):
    model = make_model()
    rest = torch.optim.SGD(model[2].parameters(), lr=0.1)
    (text,) = warned(caplog, model=model, optimizer=rest)
    assert "'0.weight', '0.bias'" in text


def test_so_are_those_of_a_loss_and_of_a_module_in_a_step(caplog):
    (text,) = warned(caplog, loss=Center())
    assert "'Center.at'" in text
    caplog.clear()
    center = Center()
    (text,) = warned(caplog, step=lambda run, batch: center(run.model(batch[0]), batch[1]))
    assert "'Center.at'" in text


@pytest.mark.parametrize("case", ["frozen", "another optimizer", "a teacher", "a frozen loss"])
def test_nothing_is_said_where_that_is_meant(case, caplog):
    model, how = make_model(), {}
    one, two = (torch.optim.SGD(model[at].parameters(), lr=0.1) for at in (0, 2))

    def step(run, batch):
        return (run.model(batch[0]) - batch[1]).square().mean()

    if case == "frozen":
        model[0].requires_grad_(False)
        how = {"optimizer": two}
    elif case == "another optimizer":
        how = {"optimizer": {"one": one, "two": two}, "step": {"one": step, "two": step}}
    elif case == "a teacher":
        teacher = make_model(1)

        def distil(run, batch):
            with torch.no_grad():
                wanted = teacher(batch[0])
            return (run.model(batch[0]) - wanted).square().mean()

        how = {"step": distil}
    else:
        how = {"loss": Center(is_trained=False)}
    assert warned(caplog, model=model, **how) == []


def test_a_rate_of_0_is_reported_unless_a_schedule_may_raise_it(caplog):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    (text,) = warned(caplog, model=model, optimizer=optimizer)
    assert "rate is 0" in text
    caplog.clear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    warm_up = LambdaLR(optimizer, lambda done: done / 10)
    assert (
        warned(
            caplog,
            model=model,
            optimizer=optimizer,
            schedule=warm_up,
            default_hooks={"console": None},
        )
        == []
    )
