"""A scheduler that is stepped after each update."""

import pytest
import torch
from tests.imix.tracing import train
from tests.tiny import make_model

from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, StepSchedules
from hookloop_dialects.imix import HookBase, engine
from hookloop_dialects.imix.engine.hooks.lr_scheduler import _largest


def test_the_scheduler_steps_after_each_update_and_the_rate_used_is_logged(tmp_path):
    class Look(HookBase):
        def after_train_iter(self):
            seen.append(self.trainer.log_buffer.latest["lr"])

    seen, model = [], make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    hook = engine.hooks.LRSchedulerHook(optimizer, scheduler)
    train(tmp_path, hook, Look(), model=model, optimizer=optimizer)
    assert seen == [0.8, 0.4, 0.2]
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1)


def make(rate=0.8):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    return model, optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)


def test_the_scheduler_continues_after_a_resume(tmp_path):
    def run(epochs, **options):
        model, optimizer, scheduler = make()
        hook = engine.hooks.LRSchedulerHook(optimizer, scheduler)
        parts = {"model": model, "optimizer": optimizer, "max_epochs": epochs}
        train(tmp_path, hook, SaveCheckpoint(), **parts, **options)
        return scheduler.last_epoch, optimizer.param_groups[0]["lr"]

    run(1)
    assert run(2, resume=True) == (6, pytest.approx(0.8 * 0.5**6))


def test_a_scheduler_of_the_trainer_is_rejected(tmp_path):
    model, optimizer, scheduler = make()
    hook = engine.hooks.LRSchedulerHook(optimizer, scheduler)
    parts = {"model": model, "optimizer": optimizer, "schedule": scheduler}
    with pytest.raises(HookError, match="the Trainer steps this scheduler already"):
        train(tmp_path, StepSchedules(), hook, **parts)


@pytest.mark.parametrize(
    ("groups", "index"),
    [
        ([(1, 0.1), (3, 0.2), (2, 0.3)], 1),
        ([(1, 0.1), (1, 0.2), (1, 0.2)], 1),
        ([(1, 0.5)], 0),
    ],
)
def test_the_rate_of_the_largest_or_most_common_group_is_logged(groups, index):
    made = [
        {"params": [torch.nn.Parameter(torch.zeros(1)) for _ in range(count)], "lr": rate}
        for count, rate in groups
    ]
    assert _largest(torch.optim.SGD(made)) == index
