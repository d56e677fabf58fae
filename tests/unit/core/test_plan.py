import logging

import pytest
from tests.tiny import make_trainer

from hookloop.core.hook import Hook, Priority, limit
from hookloop.core.plan import Plan, fire
from hookloop.core.points import PointTable
from hookloop.errors import HookError


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


def test_a_failing_hook_is_named_and_its_traceback_is_whole(tmp_path):
    class Fails(Hook):
        def after_train_iter(self, run):
            raise TypeError("mine")

    with pytest.raises(TypeError, match="mine") as error:
        make_trainer(hooks=[Fails()], run_dir=tmp_path).train()
    assert error.value.__notes__ == ["raised by the hook 'fails' (Fails) at after_train_iter"]
    assert error.traceback[-1].name == "after_train_iter"


def test_a_hook_that_may_fail_is_switched_off_with_one_warning(tmp_path, caplog):
    calls = []

    class Fails(Hook):
        on_error = "disable"

        def after_train_iter(self, run):
            calls.append(run.progress.iter)
            raise OSError("disk full")

        def after_run(self, run):
            calls.append("after_run")

    class Next(Hook):
        def after_train_iter(self, run):
            calls.append("next")

    with caplog.at_level(logging.WARNING, "hookloop"):
        outcome = make_trainer(hooks=[Fails(), Next()], run_dir=tmp_path).train()
    assert outcome.status == "completed"
    assert calls == [1, "next", "next", "next"]
    assert [r.getMessage() for r in caplog.records] == [
        "The hook 'fails' failed at after_train_iter and is switched off for the rest of the run: "
        "OSError: disk full"
    ]


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
    with pytest.raises(HookError, match="Did you mean 'after_train_iter'"):
        trainer.on("after_train_itr")


def test_firing_nothing_calls_nothing():
    compiled = plan()
    fire(compiled.after_run, None)  # type: ignore[arg-type]


def test_wrapped_calls_stay_wrapped_when_a_hook_is_disabled(tmp_path):
    calls = []

    class One(Hook):
        on_error = "disable"

        def after_train_iter(self, run):
            raise ZeroDivisionError

    class Two(Hook):
        def after_train_iter(self, run):
            pass

    def wrapper(call, hook, point):
        def wrapped(*args):
            calls.append((hook.name, point))
            call(*args)

        return wrapped

    trainer = make_trainer(hooks=[One(), Two()], max_iters=2, run_dir=tmp_path)
    trainer.on("before_run")(lambda run: run.plan.wrap(wrapper))
    trainer.train()
    at = [name for name, point in calls if point == "after_train_iter"]
    assert at == ["one", "two", "two"]


def test_a_failing_hook_is_named_once(tmp_path):
    class Break(Hook):
        @limit("1 iter")
        def after_train_iter(self, run):
            raise ValueError("broken")

        def after_train_epoch(self, run): ...

    with pytest.raises(ValueError, match="broken") as caught:
        make_trainer(hooks=[Break()], run_dir=tmp_path / "run").train()
    assert caught.value.__notes__ == ["raised by the hook 'break' (Break) at after_train_iter"]
