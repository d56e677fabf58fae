import pytest
import torch
from tests.tiny import make_model, make_trainer

from hookloop.engine.hook import Hook, Priority
from hookloop.engine.plan import Plan, fire
from hookloop.engine.points import PointTable
from hookloop.errors import HookError
from hookloop.every import limit
from hookloop.hooks import AverageWeights, StepSchedules


def plan(*hooks: Hook, produced: tuple[str, ...] = ()) -> Plan:
    return Plan(hooks, PointTable(), produced)


def order_at(compiled: Plan, point: str) -> list[str]:
    return [hook.name for hook in compiled.calls(point).hooks]


class Acts(Hook):
    def after_train_iter(self, run):
        pass


def test_only_hooks_that_implement_a_point_are_called_at_it():
    class Elsewhere(Hook):
        def before_run(self, run):
            pass

    compiled = plan(Acts(), Elsewhere())
    assert order_at(compiled, "after_train_iter") == ["acts"]
    assert order_at(compiled, "before_run") == ["elsewhere"]
    assert order_at(compiled, "after_run") == []


def test_order_is_by_priority_and_ties_stay_as_given():
    hooks = []
    for name, priority in (("c", "low"), ("a", 0), ("d", "LOW"), ("b", Priority.HIGH)):
        hook = Acts().named(name)
        hook.priority = priority
        hooks.append(hook)
    assert order_at(plan(*hooks), "after_train_iter") == ["a", "b", "c", "d"]


def counted(schedule: str | int, point: str, epochs: int = 4) -> list[int]:
    calls: list[int] = []
    hook = type("Count", (Hook,), {point: lambda self, run, *a: calls.append(run.progress.iter)})()
    hook.every = schedule
    make_trainer(hooks=[hook], max_epochs=epochs, run_dir=None, default_hooks=False).train()
    return calls


def test_a_hook_is_limited_by_its_interval(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert counted(5, "after_train_iter") == [5, 10]
    assert counted(5, "before_train_iter") == [4, 9]  # the fifth and the tenth are about to run
    assert counted("2 epochs", "after_train_epoch") == [6, 12]
    assert counted("2 epochs", "before_epoch") == [3, 9]
    assert counted("1 hour", "after_train_iter") == []


def test_one_method_is_limited_by_the_decorator(tmp_path):
    calls = []

    class Sample(Hook):
        @limit("2 iters")
        def after_train_iter(self, run):
            calls.append(run.progress.iter)

        def after_update(self, run):
            calls.append("update")

    make_trainer(hooks=[Sample()], run_dir=tmp_path).train()
    assert calls == ["update", "update", 2, "update"]


def test_functions_are_attached_to_points(tmp_path):
    trainer = make_trainer(run_dir=tmp_path)
    calls = []

    @trainer.on("after_train_iter", every=2)
    def look(run):
        calls.append(run.progress.iter)

    @trainer.on("after_train_iter", priority="highest")
    def first(run):
        calls.append("first")

    @trainer.on("after_run")
    @trainer.on("before_run")
    def both(run):
        calls.append("both")

    trainer.train()
    assert calls == ["both", "first", "first", 2, "first", "both"]
    with pytest.raises(HookError, match="'after_train_iter'"):
        trainer.on("after_train_itr")


def test_firing_nothing_calls_nothing():
    compiled = plan()
    fire(compiled.after_run, None)  # type: ignore[arg-type]


# --- plans that change during a run --------------------------------------------------------------


class Note(Hook):
    def __init__(self, calls):
        self.calls = calls

    def after_train_iter(self, run):
        self.calls.append((self.name, run.progress.iter))


def test_a_hook_that_is_added_acts_from_the_next_firing_in_its_order(tmp_path):
    calls = []
    late = Note(calls).named("late")
    late.priority = "HIGH"

    class Add(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 1:
                run._plan.add(late)

    trainer = make_trainer(hooks=[Note(calls), Add()], run_dir=tmp_path)
    trainer.train()
    assert calls == [("note", 1), ("late", 2), ("note", 2), ("late", 3), ("note", 3)]
    assert trainer.run.hooks[0] is late


def test_what_is_wrong_with_an_added_hook_is_rejected():
    compiled = plan(Acts())
    with pytest.raises(HookError, match="'acts'"):
        compiled.add(Acts())
    with pytest.raises(HookError, match="is not a hook"):
        compiled.add(print)
    assert len(compiled.hooks) == 1


def test_several_wrappers_wrap_the_calls_of_later_hooks_too():
    def adding(letter):
        def wrapper(call, hook, point):
            def wrapped(*args):
                calls.append(f"{letter}:{hook.name}")
                call(*args)

            return wrapped

        return wrapper

    calls = []

    class Quiet(Acts):
        draws_random_numbers = False

    compiled = plan(Quiet())
    compiled.wrap(adding("inner"))
    compiled.wrap(adding("outer"))
    compiled.add(Quiet().named("late"))
    fire(compiled.after_train_iter, None)
    assert calls == ["outer:quiet", "inner:quiet", "outer:late", "inner:late"]


def test_calls_are_fired_singly_each_with_its_hook():
    compiled = plan(Acts(), Acts().named("other"), Acts().named("third"))
    parts = compiled.after_train_iter.singly()
    assert [part.hooks[0].name for part in parts] == ["acts", "other", "third"]
    assert all(part.point is compiled.after_train_iter.point for part in parts)


@pytest.mark.parametrize("takes_part", [False, True])
def test_an_interval_in_time_begins_with_the_plan_and_again_with_each_call(
    takes_part, monkeypatch, tmp_path
):
    now = 0.0
    monkeypatch.setattr("hookloop.every.monotonic", lambda: now)
    called = []

    def pass_time(run):
        nonlocal now
        now += 25.0

    def look(run):
        called.append(run.progress.iter)

    trainer = make_trainer(max_epochs=3, run_dir=tmp_path)
    trainer.on("after_update")(pass_time)
    attach = trainer.on("after_train_iter", every="1 minute", takes_part_in_training=takes_part)
    attach(look)
    trainer.train()
    assert called == [3, 6, 9]  # After 75, 150 and 225 seconds.


def test_an_interval_in_time_survives_hooks_that_come_and_go(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("hookloop.every.monotonic", lambda: now[0])
    seen = []

    class Sometimes(Hook):
        every = "60 s"

        def after_train_iter(self, run):
            seen.append(run.progress.iter)

    trainer = make_trainer(hooks=[Sometimes()], max_epochs=3, run_dir=tmp_path)

    @trainer.on("after_train_iter", priority="HIGHEST")
    def add_another(run):
        now[0] += 25
        run._plan.add(Acts().named(f"late_{run.progress.iter}"))

    trainer.train()
    assert seen == [3, 6, 9]


class OwnSchedule(Hook):
    owns = ("schedules",)


class Writes(Hook):
    owns = ("report",)


@pytest.mark.parametrize(
    ("hooks", "what"),
    [
        ([StepSchedules(), OwnSchedule()], "own_schedule.*OwnSchedule.*own the schedules"),
        (
            [AverageWeights(), AverageWeights().named("slow")],
            "average_weights.*slow.*own the averaged weights",
        ),
        ([Writes(), Writes().named("other")], "own the report"),
    ],
)
def test_two_hooks_that_own_the_same_are_rejected_by_name(hooks, what):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    trainer = make_trainer(hooks=hooks, model=model, optimizer=optimizer, schedule=schedule)
    with pytest.raises(HookError, match=what):
        trainer.check()
    hooks[1].owns = "report"
    with pytest.raises(HookError, match=r"owns is text: write \('report',\)"):
        make_trainer(hooks=hooks[1:]).check()
