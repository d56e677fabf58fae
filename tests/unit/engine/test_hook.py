"""A hook by itself: its name, priority, interval and methods."""

import copy
import pickle

import pytest

from hookloop import Every, Hook, Priority, limit
from hookloop.engine.hook import (
    FunctionHook,
    acts_at,
    interval_at,
    kind_of,
    method_of,
    priority_of,
    snake_case,
)
from hookloop.engine.points import MountPoints, Point, PointTable
from hookloop.errors import ArgumentError, HookError


class Sample(Hook):
    def __init__(self, size: int = 3) -> None:
        self.size = size

    def after_train_iter(self, run):
        pass

    @limit("2 epochs")
    def after_epoch(self, run):
        pass


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("SaveCheckpoint", "save_checkpoint"),
        ("WriteCSV", "write_csv"),
        ("CSVWriter", "csv_writer"),
        ("StopOnNaN", "stop_on_nan"),
        ("WriteMLflow", "write_mlflow"),
        ("WriteTensorBoard", "write_tensorboard"),
        ("Top5Accuracy", "top5_accuracy"),
        ("EMA", "ema"),
    ],
)
def test_a_class_names_its_hooks(name, snake):
    assert snake_case(name) == snake
    assert type(name, (Hook,), {})().name == snake


def test_a_name_may_be_given_by_the_class_or_to_one_instance():
    class Own(Hook):
        name = "mine"

    class Sub(Own):
        pass

    assert (Own().name, Sub().name) == ("mine", "sub")
    renamed = Own().named("other")
    assert (renamed.name, Own().name) == ("other", "mine")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("highest", 0),
        (" Above_Normal ", 40),
        (Priority.LOW, 70),
        (0, 0),
        (100, 100),
        ("LOWEST", 100),
    ],
)
def test_a_priority_is_a_name_or_a_number(value, number):
    assert Priority.parse(value) == number
    hook = Sample()
    hook.priority = value
    assert priority_of(hook) == number


@pytest.mark.parametrize("value", [-1, 101, "medium", "", 1.5, True, None])
def test_what_is_not_a_priority_is_rejected_with_the_name_of_the_hook(value):
    hook = Sample()
    hook.priority = value
    with pytest.raises(HookError, match="Sample.priority"):
        priority_of(hook)


def test_a_misspelled_priority_names_the_nearest():
    with pytest.raises(HookError, match="'HIGHEST'"):
        Priority.parse("higest")


def test_a_hook_acts_at_the_points_that_it_overrides():
    class Inherits(Sample):
        def before_run(self, run):
            pass

    table = PointTable()
    assert acts_at(Sample(), table) == ["after_train_iter", "after_epoch"]
    assert acts_at(Inherits(), table) == ["before_run", "after_train_iter", "after_epoch"]
    assert acts_at(Hook(), table) == []
    assert method_of(Sample(), "before_run") is None
    assert method_of(Sample(), "after_sample") is None  # The base class does not have it at all.


def test_so_it_does_at_a_point_of_the_project_and_through_the_instance():
    class Own(Hook):
        def after_sample(self, run):
            pass

    hook = Own()
    hook.before_run = lambda run: None
    assert acts_at(hook, PointTable(["after_sample"])) == ["before_run", "after_sample"]


def test_an_override_that_only_calls_the_base_counts_as_one():
    class Calls(Hook):
        def after_run(self, run):
            super().after_run(run)

    assert acts_at(Calls(), PointTable()) == ["after_run"]


@pytest.mark.parametrize(
    ("every", "point", "expected"),
    [
        (None, "after_train_iter", None),
        ("10 iters", "after_train_iter", "10 iters"),
        (10, "after_train_iter", "10 iters"),
        ("3 epochs", "after_train_iter", None),  # That point counts iterations.
        ("3 epochs", "after_epoch", "2 epochs"),  # The interval of the method itself wins.
        ("5 minutes", "after_train_iter", "5 minutes"),  # Time passes at every clock.
    ],
)
def test_an_interval_limits_the_points_of_its_unit(every, point, expected):
    hook = Sample()
    hook.every = every
    found = interval_at(hook, getattr(MountPoints, point))
    assert found == (None if expected is None else Every.parse(expected))


def test_time_does_not_limit_a_point_without_a_clock():
    class Once(Hook):
        every = "5 minutes"

        def before_run(self, run):
            pass

    assert interval_at(Once(), MountPoints.before_run) is None
    assert interval_at(Once(), Point("before_run")) is None


def test_a_function_is_a_hook_at_one_point():
    def look(run):
        pass

    hook = FunctionHook(look, "after_run", priority="low", takes_part_in_training=True)
    assert acts_at(hook, PointTable()) == ["after_run"]
    assert (hook.name, priority_of(hook), hook.takes_part_in_training) == (
        "look@after_run",
        70,
        True,
    )
    assert hook.after_run is look
    assert FunctionHook(Sample().after_train_iter, "on_stop").name == "after_train_iter@on_stop"
    assert FunctionHook(copy.copy, "on_stop", every=None).every is None


def test_a_callable_without_a_name_is_a_function_too():
    class Look:
        def __call__(self, run):
            pass

    assert FunctionHook(Look(), "before_run").name == "function@before_run"


def test_that_a_hook_draws_nothing_holds_for_its_own_class_only():
    class Quiet(Hook):
        draws_random_numbers = False

    class Sub(Quiet):
        pass

    class Stated(Quiet):
        draws_random_numbers = False

    drawing = [kind().draws_random_numbers for kind in (Hook, Quiet, Sub, Stated)]
    assert drawing == [True, False, True, False]


def test_an_unknown_argument_of_a_hook_is_rejected_with_the_nearest():
    with pytest.raises(ArgumentError, match="'size'"):
        Sample(sise=4)
    assert Sample(4).size == Sample(size=4).size == 4


def test_a_hook_can_be_copied_and_pickled():
    hook = Sample(5).named("mine")
    for other in (copy.deepcopy(hook), copy.copy(hook)):
        assert (other.size, other.name) == (5, "mine")
    assert pickle.loads(pickle.dumps(Hook().named("plain"))).name == "plain"


def test_an_adapted_hook_is_described_by_the_class_of_its_author():
    class TheirHook:
        pass

    adapted = Hook()
    adapted.stands_for = TheirHook()
    assert (kind_of(adapted), kind_of(Sample())) == ("TheirHook", "Sample")


def test_a_hook_without_a_state_loads_any():
    hook = Hook()
    assert hook.state_dict() == {}
    hook.load_state_dict({"left": 1})
    assert hook.state_dict() == {} and list(hook.stores("runs/one")) == []
