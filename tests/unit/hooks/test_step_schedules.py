import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer, record
from torch.optim import lr_scheduler

from hookloop import Hook, Schedule
from hookloop.errors import MetricError
from hookloop.hooks import SaveCheckpoint, StepSchedules


def settings(make_schedule, tmp_path, *, key="lr", momentum=0.0, **options):
    """Return the setting that each iteration of a training used."""
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=momentum)
    seen, calls = record(["before_update"], lambda run: run.optimizer.param_groups[0][key])
    make_trainer(
        model=model,
        optimizer=optimizer,
        schedule=make_schedule(optimizer),
        hooks=[StepSchedules(), seen, SaveCheckpoint()],
        run_dir=tmp_path,
        **({"max_iters": 6} | options),
    ).train()
    return [value for _, value in calls]


def by_hand(make_schedule, steps, *, key="lr", momentum=0.0):
    optimizer = torch.optim.SGD(make_model().parameters(), lr=1e-2, momentum=momentum)
    schedule, values = make_schedule(optimizer), []
    for _ in range(steps):
        values.append(optimizer.param_groups[0][key])
        optimizer.step()
        schedule.step()
    return values


def warm_up_and_cosine(optimizer):
    warm_up = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3)
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, 3)
    return lr_scheduler.SequentialLR(optimizer, [warm_up, cosine], milestones=[3])


def chained(optimizer):
    return lr_scheduler.ChainedScheduler(
        [
            lr_scheduler.ConstantLR(optimizer, 0.1, total_iters=2),
            lr_scheduler.ExponentialLR(optimizer, 0.9),
        ]
    )


def one_cycle(optimizer):
    return lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=6)


@pytest.mark.parametrize("make_schedule", [warm_up_and_cosine, chained, one_cycle])
def test_torchs_schedules_step_as_by_hand(make_schedule, tmp_path):
    momentum = 0.9
    for key in ("lr", "momentum"):
        used = settings(make_schedule, tmp_path / key, key=key, momentum=momentum)
        assert used == pytest.approx(by_hand(make_schedule, 6, key=key, momentum=momentum))


def test_one_cycle_moves_the_momentum_too(tmp_path):
    used = settings(one_cycle, tmp_path, key="momentum", momentum=0.9)
    assert len(set(used)) > 3


def test_a_warm_up_by_iterations_joins_a_schedule_by_epochs(tmp_path):
    def schedules(optimizer):
        return {
            "warm-up": lr_scheduler.LinearLR(optimizer, 0.25, total_iters=2),
            "main": Schedule(lr_scheduler.StepLR(optimizer, 1, gamma=0.1), every="1 epoch"),
        }

    used = settings(schedules, tmp_path, max_iters=7)
    # The warm-up is over after two iterations; an epoch has three.
    expected = [0.25, 0.625, 1, 0.1, 0.1, 0.1, 0.01]
    assert used == pytest.approx([0.01 * factor for factor in expected])


def test_an_interval_between_steps_is_kept(tmp_path):
    used = settings(lambda o: Schedule(lr_scheduler.StepLR(o, 1, 0.1), every=2), tmp_path)
    assert used == pytest.approx([1e-2, 1e-2, 1e-3, 1e-3, 1e-4, 1e-4])


def test_a_plateau_follows_the_metric(tmp_path):
    losses = iter([1, 1, 1, 1, 0.5, 0.5])

    def plateau(optimizer):
        scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=1)
        return Schedule(scheduler, metric="val/score")

    used = settings(
        plateau,
        tmp_path,
        max_epochs=6,
        max_iters=None,
        val_data=make_data(4),
        metrics={"score": lambda output, targets: next(losses)},
    )
    # patience=1: the second validation in a row without improvement lowers the rate.
    assert used[::3] == pytest.approx([1e-2, 1e-2, 1e-2, 1e-3, 1e-3, 1e-3])


def test_a_plateau_of_an_unknown_metric_names_those_that_exist(tmp_path):
    def plateau(optimizer):
        return Schedule(lr_scheduler.ReduceLROnPlateau(optimizer), metric="val/los")

    with pytest.raises(MetricError, match="'val/loss'"):
        settings(plateau, tmp_path, val_data=make_data(4))


def test_each_optimizer_has_its_schedule(tmp_path):
    model = make_model()
    optimizers = {
        name: torch.optim.SGD(part.parameters(), lr=1.0)
        for name, part in (("a", model[0]), ("b", model[2]))
    }
    rates = []
    trainer = make_trainer(
        model=model,
        optimizer=optimizers,
        schedule={
            "a": lr_scheduler.ExponentialLR(optimizers["a"], 0.5),
            "b": Schedule(lr_scheduler.ExponentialLR(optimizers["b"], 0.1), every="1 epoch"),
        },
        hooks=[StepSchedules()],
        max_iters=4,
        run_dir=tmp_path,
    )
    trainer.on("before_update")(
        lambda run: rates.append(
            [optimizer.param_groups[0]["lr"] for optimizer in run.optimizers.values()]
        )
    )
    trainer.train()
    assert rates == [[1.0, 1.0], [0.5, 1.0], [0.25, 1.0], [0.125, pytest.approx(0.1)]]


@pytest.mark.parametrize("make_schedule", [warm_up_and_cosine, chained, one_cycle])
def test_a_resumed_run_continues_in_the_schedule(make_schedule, tmp_path):
    straight = settings(make_schedule, tmp_path / "a", momentum=0.9)
    options = {"momentum": 0.9, "max_iters": None}
    settings(make_schedule, tmp_path / "b", max_epochs=1, **options)
    rest = settings(make_schedule, tmp_path / "b", max_epochs=2, resume=True, **options)
    assert rest == pytest.approx(straight[3:])


@pytest.mark.parametrize("every", ["1 epoch", "2 epochs", 1, 2])
def test_a_schedule_that_a_hook_steps_too_is_reported_once(every, caplog, tmp_path):
    schedules = []

    class StepItself(Hook):
        def after_epoch(self, run):
            schedules[0].scheduler.step()

    def make(optimizer):
        schedules[:] = [Schedule(lr_scheduler.ExponentialLR(optimizer, 0.9), every=every)]
        return schedules[0]

    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    make_trainer(
        model=model,
        optimizer=optimizer,
        schedule=make(optimizer),
        hooks=[StepSchedules(), StepItself()],
        max_epochs=4,
    ).train()
    (text,) = (one for one in caplog.messages if "steps it, too" in one)
    assert "ExponentialLR" in text


@pytest.mark.parametrize("every", ["1 epoch", 2])
def test_a_schedule_that_continues_or_goes_back_is_not(every, caplog, tmp_path):
    def trainer(**how):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
        return make_trainer(
            model=model,
            optimizer=optimizer,
            schedule=Schedule(warm_up_and_cosine(optimizer), every=every),
            hooks=[StepSchedules(), SaveCheckpoint(every="2 iters")],
            run_dir=tmp_path / "run",
            max_epochs=3,
            **how,
        )

    @(first := trainer()).on("after_train_iter")
    def stop(run):
        if run.progress.iter == 5:
            run.stop("enough")

    first.train()
    second, is_back = trainer(resume=True), []

    @second.on("after_train_iter")
    def go_back(run):
        if run.progress.iter == 8 and not is_back:
            is_back.append(True)
            run.rewind(to=6)

    second.train()
    assert is_back
    assert not [one for one in caplog.messages if "steps it, too" in one]
