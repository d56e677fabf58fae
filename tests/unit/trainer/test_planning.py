import pytest
import torch
from tests.tiny import make_model, make_trainer

from hookloop import Hook, Point
from hookloop.errors import HookError, MetricError
from hookloop.hooks import StepSchedules, WriteMetrics


class Count(Hook):
    """Counts how often the plan looks at its methods."""

    draws_random_numbers = False

    def __init__(self):
        self.looked = 0

    def __getattribute__(self, name):
        if name == "after_train_iter":
            object.__setattr__(self, "looked", object.__getattribute__(self, "looked") + 1)
        return super().__getattribute__(name)

    def after_train_iter(self, run):
        pass


def test_hooks_are_verified_once_between_a_check_and_the_training(tmp_path):
    checked, unchecked = Count(), Count()
    trainer = make_trainer(hooks=[checked], run_dir=tmp_path / "a")
    trainer.check_hooks()
    plan, before = trainer.run._plan, checked.looked
    trainer.timetable()
    trainer.check()
    assert trainer.run._plan is plan
    trainer.train()
    assert checked.looked - before < before  # Only what a run itself looks at.
    make_trainer(hooks=[unchecked], run_dir=tmp_path / "b").train()
    assert checked.looked <= unchecked.looked + 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("priority", "LOW"),
        ("every", "2 iters"),
        ("name", "other"),
        ("on_error", "disable"),
        ("takes_part_in_training", True),
        ("after_epoch", lambda run: None),
    ],
)
def test_a_hook_that_was_changed_after_a_check_is_verified_again(name, value, tmp_path):
    hook = Count()
    trainer = make_trainer(hooks=[hook], run_dir=tmp_path)
    trainer.check_hooks()
    plan = trainer.run._plan
    setattr(hook, name, value)
    trainer.check_hooks()
    assert trainer.run._plan is not plan


def test_what_is_wrong_after_the_change_is_rejected(tmp_path):
    hook = Count()
    trainer = make_trainer(hooks=[hook], run_dir=tmp_path)
    trainer.check_hooks()
    hook.reads = ("val/nothing",)
    with pytest.raises(MetricError, match="val/nothing"):
        trainer.train()


def test_a_function_attached_after_a_check_takes_part(tmp_path):
    seen = []
    trainer = make_trainer(run_dir=tmp_path)
    trainer.check()
    trainer.on("after_train_iter")(lambda run: seen.append(run.progress.iter))
    trainer.train()
    assert seen == [1, 2, 3]


def test_a_function_that_is_attached_twice_gets_a_number(tmp_path):
    def look(run):
        pass

    trainer = make_trainer(run_dir=tmp_path)
    for _ in range(3):
        trainer.on("after_epoch")(look)
    names = [row.hook for row in trainer.timetable() if row.point == "after_epoch"]
    assert names == ["look@after_epoch", "look@after_epoch#2", "look@after_epoch#3"]


def test_a_hook_that_was_disabled_takes_part_in_the_next_training(tmp_path, caplog):
    class Frail(Hook):
        on_error = "disable"
        calls = 0

        def after_train_iter(self, run):
            self.calls += 1
            raise ZeroDivisionError

    frail = Frail()
    trainer = make_trainer(hooks=[frail], max_epochs=1, run_dir=tmp_path)
    trainer.train()
    trainer.train(max_epochs=2)
    assert frail.calls == 2


def test_metrics_of_a_loop_of_ones_own_may_have_any_name(tmp_path):
    class Watch(Hook):
        reads = ("train/quality",)

        def after_train_iter(self, run):
            pass

    trainer = make_trainer(hooks=[Watch()], run_dir=tmp_path)
    with pytest.raises(MetricError, match="train/quality"):
        trainer.check_hooks()
    with trainer.loop() as batches:
        for _ in batches:
            trainer.record(trainer.run.model(trainer.run.batch[0]).mean(), quality=1.0)
    assert trainer.run.metrics.latest("train/quality") == 1.0


def test_the_mean_of_an_epoch_follows_from_a_number_of_iterations(tmp_path):
    class Watch(Hook):
        reads = ("train_epoch/loss", "train_epoch/margin")

        def after_epoch(self, run):
            self.seen = run.metrics.latest("train_epoch/margin")

    class Put(Hook):
        writes = ("train/margin",)

        def after_train_iter(self, run):
            run.metrics.put("train/margin", run.progress.iter)

    watch = Watch()
    make_trainer(hooks=[Put(), watch], run_dir=tmp_path).train()
    assert watch.seen == 2.0


class Announce(Hook):
    """Brings a mount point along and fires it."""

    fires = (Point("on_half_time", args=("minute",)),)

    def after_train_epoch(self, run):
        run.fire("on_half_time", 45)


class Listen(Hook):
    def __init__(self):
        self.heard = []

    def on_half_time(self, run, minute):
        self.heard.append(minute)


def test_a_hook_may_bring_mount_points_along(tmp_path):
    listen = Listen()
    trainer = make_trainer(hooks=[listen, Announce()], run_dir=tmp_path, max_epochs=2)
    trainer.train()
    trainer.train(max_epochs=3)
    assert listen.heard == [45, 45, 45]


def test_without_the_hook_that_brings_it_there_is_no_such_point():
    with pytest.raises(HookError, match="Listen.on_half_time"):
        make_trainer(hooks=[Listen()]).check()


def test_two_hooks_cannot_bring_different_points_of_one_name():
    class Other(Hook):
        fires = (Point("on_half_time"),)

    with pytest.raises(HookError, match="'on_half_time'"):
        make_trainer(hooks=[Announce(), Other()]).check()


@pytest.mark.parametrize(
    ("kind", "name", "harm"),
    [(WriteMetrics, "metrics", "metrics.jsonl"), (StepSchedules, "schedule", "made twice")],
)
def test_a_second_hook_of_a_kind_that_works_once_is_rejected(tmp_path, kind, name, harm):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = make_trainer(
        model=model,
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.StepLR(optimizer, 1),
        hooks=[kind()],
        default_hooks={name: kind()},
        run_dir=tmp_path / "run",
    )
    own = kind().name
    with pytest.raises(HookError, match=harm) as caught:
        trainer.train()
    assert f"default_hooks={{'{name}': {kind.__name__}(...)}}" in str(caught.value)
    assert caught.value.hook == own
    assert not (tmp_path / "run").exists()
    make_trainer(default_hooks={name: kind()}, run_dir=tmp_path / "run").check()


def test_without_a_schedule_there_is_nothing_that_two_hooks_could_own():
    make_trainer(hooks=[StepSchedules().named("mine")], default_hooks=None).check()
