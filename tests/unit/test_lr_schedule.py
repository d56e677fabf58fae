"""A schedule: when it steps, what it rejects, and how schedules are given."""

import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer, record

from hookloop import Schedule
from hookloop.errors import ModelError
from hookloop.hooks import StepSchedules


def rates(interval_at, tmp_path, **options):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    seen, calls = record(["after_train_iter"], lambda run: run.optimizer.param_groups[0]["lr"])
    make_trainer(
        model=model,
        optimizer=optimizer,
        schedule=interval_at(optimizer),
        hooks=[StepSchedules(), seen],
        run_dir=tmp_path,
        **options,
    ).train()
    return [note for _, note in calls]


def test_schedules_step_by_iteration_epoch_and_metric(tmp_path):
    halve = torch.optim.lr_scheduler.ExponentialLR
    by_iter = rates(lambda o: halve(o, 0.5), tmp_path / "a", max_iters=4)
    assert by_iter == [1.0, 0.5, 0.25, 0.125]  # what was used: the schedule steps afterwards
    by_epoch = rates(
        lambda o: Schedule(halve(o, 0.5), every="1 epoch"), tmp_path / "b", max_iters=4
    )
    assert by_epoch == [1.0, 1.0, 1.0, 0.5]
    plateau = rates(
        lambda o: Schedule(
            torch.optim.lr_scheduler.ReduceLROnPlateau(
                o, factor=0.1, patience=0, threshold=1e9, threshold_mode="abs"
            ),
            metric="val/loss",
        ),
        tmp_path / "c",
        max_epochs=3,
        val_data=make_data(4),
    )
    assert plateau[::3] == pytest.approx([1.0, 1.0, 0.1])


def test_reduce_on_plateau_needs_a_metric():
    optimizer = torch.optim.SGD(make_model().parameters(), lr=1.0)
    with pytest.raises(ModelError, match="metric='val/loss'"):
        Schedule(torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer))


def exponential(optimizer=None):
    optimizer = optimizer or torch.optim.SGD(make_model().parameters(), lr=1.0)
    return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)


def rate(schedule):
    return schedule.scheduler.optimizer.param_groups[0]["lr"]


def stepped(schedule, counts):
    """Step a schedule with one count after the other, and return the rates."""
    schedule.scheduler.optimizer.step()  # torch warns of a schedule that steps before it.
    found = []
    for count in counts:
        schedule.step(count)
        found.append(rate(schedule))
    return found


def test_a_schedule_steps_at_multiples_of_its_interval():
    assert stepped(Schedule(exponential()), range(1, 4)) == [0.5, 0.25, 0.125]
    assert stepped(Schedule(exponential(), "3 iters"), range(1, 8)) == (
        [1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25]
    )


def test_a_schedule_counts_iterations_or_epochs_or_follows_a_metric():
    by_iter, by_epoch = Schedule(exponential(), 2), Schedule(exponential(), "2 epochs")
    by_metric = Schedule(exponential(), metric="val/loss")
    counted = [[one.counts(unit) for unit in ("iters", "epochs")] for one in (by_iter, by_epoch)]
    assert counted == [[True, False], [False, True]]
    assert not by_metric.counts("iters") and not by_metric.counts("epochs")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schedule(torch.optim.lr_scheduler.ExponentialLR), "is not a scheduler"),
        (lambda: Schedule(3), "3 is not a scheduler"),
        (lambda: Schedule(exponential(), "5 minutes"), "steps by iterations or epochs"),
    ],
)
def test_what_cannot_be_a_schedule_is_rejected(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def test_a_schedule_continues_from_its_state_with_the_shape_that_it_has_now():
    first = Schedule(exponential())
    stepped(first, [1, 2])
    second = Schedule(exponential())
    second.load_state_dict(first.state_dict())
    second.scheduler.optimizer.load_state_dict(first.scheduler.optimizer.state_dict())
    assert stepped(second, [3]) == stepped(first, [3]) == [0.125]
