"""Hooks that fail: which one is named, which one is disabled, and what continues."""

import logging

import pytest
from tests.tiny import make_trainer

from hookloop.engine.hook import FunctionHook, Hook
from hookloop.errors import HookError
from hookloop.every import limit


def test_a_failing_hook_is_named_and_its_traceback_is_whole(tmp_path):
    class Fails(Hook):
        def after_train_iter(self, run):
            raise TypeError("mine")

    with pytest.raises(TypeError, match="mine") as error:
        make_trainer(hooks=[Fails()], run_dir=tmp_path).train()
    assert error.value.__notes__ == ["raised by the hook 'fails' (Fails) at after_train_iter"]
    assert error.traceback[-1].name == "after_train_iter"


def test_a_failing_hook_is_named_once(tmp_path):
    class Break(Hook):
        @limit("1 iter")
        def after_train_iter(self, run):
            raise ValueError("broken")

        def after_train_epoch(self, run): ...

    with pytest.raises(ValueError, match="broken") as caught:
        make_trainer(hooks=[Break()], run_dir=tmp_path / "run").train()
    assert caught.value.__notes__ == ["raised by the hook 'break' (Break) at after_train_iter"]


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
    trainer.on("before_run")(lambda run: run._plan.wrap(wrapper))
    trainer.train()
    at = [name for name, point in calls if point == "after_train_iter"]
    assert at == ["one", "two", "two"]


class FailAt:
    """A function for several hooks: its call of a given number fails."""

    __name__ = "look"

    def __init__(self, number):
        self.number = number
        self.calls = 0

    def __call__(self, run):
        self.calls += 1
        if self.calls == self.number:
            raise ValueError("broken")

    method = __call__


ATTACHED = [{}, {"every": 1}, {"takes_part_in_training": True}, {"every": 1, "priority": "low"}]


@pytest.mark.parametrize("options", ATTACHED, ids=str)
@pytest.mark.parametrize(
    ("number", "name"),
    [(1, "look@after_train_iter"), (2, "look@after_train_iter#2"), (3, "look@after_train_iter#3"),
     (5, "look@after_train_iter#2")],
)  # fmt: skip
def test_of_one_function_attached_several_times_the_failing_one_is_named(
    options, number, name, tmp_path
):
    trainer = make_trainer(run_dir=tmp_path)
    look = FailAt(number)
    for _ in range(3):
        trainer.on("after_train_iter", **options)(look)
    with pytest.raises(ValueError, match="broken") as caught:
        trainer.train()
    assert caught.value.__notes__ == [
        f"raised by the hook '{name}' (FunctionHook) at after_train_iter"
    ]


class Shared(Hook):
    """Acts through a method of another object, which it may share with another hook."""

    on_error = "disable"

    def __init__(self, call):
        self.after_train_iter = call

    def after_run(self, run):
        run.metrics.put(f"ended/{self.name}", 1)


class Quiet(Shared):
    draws_random_numbers = False


class TakesPart(Shared):
    takes_part_in_training = True


@pytest.mark.parametrize("kind", [Shared, Quiet, TakesPart])
@pytest.mark.parametrize("number", [1, 2, 3, 6])
def test_of_one_bound_method_in_several_hooks_only_the_failing_one_is_disabled(
    kind, number, tmp_path
):
    look = FailAt(number)
    hooks = [kind(look.method).named(name) for name in ("one", "two", "three")]
    outcome = make_trainer(hooks=hooks, run_dir=tmp_path).train()
    lost = ["one", "two", "three"][(number - 1) % 3]
    assert [(one.hook, one.point) for one in outcome.disabled] == [(lost, "after_train_iter")]
    ended = {name for name in outcome.metrics if name.startswith("ended/")}
    assert ended == {f"ended/{name}" for name in ("one", "two", "three") if name != lost}
    # Three iterations of three calls each, less those of the hook that was left out.
    left_out = 3 - (number - 1) // 3 - 1
    assert look.calls == 9 - left_out


@pytest.mark.parametrize("interval", [None, 1])
def test_of_two_attached_functions_the_second_alone_is_disabled(interval, tmp_path, caplog):
    look = FailAt(2)
    hooks = [FunctionHook(look, "after_train_iter", every=interval) for _ in range(2)]
    for name, hook in zip(("first", "second"), hooks, strict=True):
        hook.named(name).on_error = "disable"
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path)
    trainer.train()
    assert [one.hook for one in trainer.run._plan.disabled] == ["second"]
    assert trainer.run.hooks == (hooks[0],)
    assert look.calls == 4  # Two in the first iteration, one in each of the other two.
    assert "'second' failed at after_train_iter" in caplog.text


def test_a_hook_that_fails_at_one_point_is_disabled_at_all_of_them(tmp_path):
    look = FailAt(1)
    trainer = make_trainer(hooks=[Shared(look)], run_dir=tmp_path)
    trainer.train()
    assert trainer.run._plan.after_train_iter == trainer.run._plan.after_run == ()
    assert str(trainer.run._plan.disabled[0]) == (
        "shared failed at after_train_iter: ValueError: broken"
    )


def test_no_policy_hides_a_hook_that_was_set_up_wrongly(tmp_path):
    class Wrong(Hook):
        on_error = "disable"

        def before_train(self, run):
            raise HookError("it has no target")

    with pytest.raises(HookError, match="no target"):
        make_trainer(hooks=[Wrong()], run_dir=tmp_path).train()


def test_an_exit_is_not_a_failure_of_a_hook(tmp_path):
    class Leave(Hook):
        on_error = "disable"

        def after_train_iter(self, run):
            raise SystemExit(3)

    trainer = make_trainer(hooks=[Leave()], run_dir=tmp_path)
    with pytest.raises(SystemExit):
        trainer.train()
    assert not trainer.run._plan.disabled
