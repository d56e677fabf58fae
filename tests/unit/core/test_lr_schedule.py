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
