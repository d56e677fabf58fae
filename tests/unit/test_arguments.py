"""Arguments that are misspelled, or of the wrong type, are rejected with what was meant."""

from pathlib import Path

import numpy as np
import pytest

import hookloop
from hookloop import hooks
from hookloop.arguments import (
    check_names,
    check_values,
    missing_attribute,
    missing_name,
    unknown_argument,
)
from hookloop.errors import ArgumentError


def make(name, *, count: "int" = 1, rate: "float | None" = None, flag: "bool" = False): ...
def paths(*, where: "str | Path" = "", names: "Sequence[str]" = (), other: "object" = None): ...  # noqa: F821


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"count": "3"}, "make: count='3' must be a whole number. Write 3."),
        ({"count": 3.0}, "Write 3."),
        ({"count": 2.5}, "must be a whole number."),
        ({"count": True}, "count=True must be a whole number."),
        ({"rate": "1e-3"}, "must be a number or None. Write 0.001."),
        ({"rate": "fast"}, "must be a number or None."),
        ({"flag": "no"}, "must be True or False."),
        ({"flag": 1}, "must be True or False."),
    ],
)
def test_a_value_of_the_wrong_type_is_rejected_with_the_right_one(named, message):
    with pytest.raises(ArgumentError) as error:
        check_values(make, ("a",), named)
    assert str(error.value).endswith(message)


@pytest.mark.parametrize(
    "named", [{"count": np.int64(3)}, {"rate": 3}, {"rate": np.float32(0.5)}, {"rate": None}, {}]
)
def test_numbers_of_other_libraries_are_numbers(named):
    check_values(make, ("a",), named)


def test_text_is_not_a_list_of_names():
    with pytest.raises(ArgumentError, match=r"names='loss'.*\['loss'"):
        check_values(paths, (), {"names": "loss"})
    for good in ({"names": ["loss"]}, {"names": ("a", "b")}, {"where": Path("a")}, {"other": 3}):
        check_values(paths, (), good)


def test_too_many_arguments_by_position_name_the_next_one():
    with pytest.raises(ArgumentError, match="'name'.*2"):
        check_names(make, ("a", 3), {})


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (lambda: hooks.StopAfter(epoch=3), "epochs"),
        (lambda: hooks.StopOnPlateau(monitor="val/loss"), "metric"),
        (lambda: hooks.SaveCheckpoint(monitor="val/loss"), "best"),
        (lambda: hooks.SaveCheckpoint(save_top_k=3), "keep_best"),
        (lambda: hooks.SaveCheckpoint(dirpath="x"), "directory"),
        (lambda: hooks.AverageWeights(decay=0.9), "momentum"),
        (lambda: hooks.WriteTensorBoard(log_dir="x"), "directory"),
        (lambda: hooks.ClipGradients(norm=1.0), "max_norm"),
    ],
)
def test_hooks_name_their_argument_for_that_of_others(wrong, right):
    with pytest.raises(ArgumentError, match=f"Did you mean '{right}'"):
        wrong()


def test_hooks_check_the_type_of_plain_values():
    with pytest.raises(ArgumentError, match="StopAfter.*epochs='3'.*None"):
        hooks.StopAfter(epochs="3")


def test_a_hook_of_a_user_may_take_what_it_likes():
    class Mine(hookloop.Hook):
        def __init__(self, count: "int"):
            self.count = count

    assert Mine("three").count == "three"


@pytest.mark.parametrize(
    ("statement", "right"),
    [
        ("from hookloop.hooks import EarlyStopping", "from hookloop.hooks import StopOnPlateau"),
        ("from hookloop.hooks import ModelCheckpoint", "from hookloop.hooks import SaveCheckpoint"),
        ("from hookloop import StopAfter", "from hookloop.hooks import StopAfter"),
        ("from hookloop import Callback", "from hookloop import Hook"),
        ("from hookloop import Engine", "from hookloop import Trainer"),
    ],
)
def test_an_import_by_the_name_of_others_names_ours(statement, right):
    with pytest.raises(ImportError, match=right):
        exec(statement)


def test_a_misspelled_name_of_the_package_names_the_nearest():
    with pytest.raises(AttributeError, match="'Trainer'"):
        hookloop.Trianer  # noqa: B018
    assert not hasattr(hookloop, "Zebra")
    assert not hasattr(hooks, "Zebra")


def test_submodules_are_imported_whatever_they_are_called():
    from hookloop import checkpoint, metrics  # "Checkpoint" is a name of others for a hook.

    assert checkpoint.__name__ == "hookloop.checkpoint"
    assert metrics.__name__ == "hookloop.metrics"


def test_a_missing_name_without_a_hint_is_an_attribute_error():
    assert isinstance(missing_name("m", "zebra", None, []), AttributeError)


def test_the_error_names_the_argument():
    with pytest.raises(ArgumentError) as caught:
        check_values(make, ("a",), {"rate": 1.0, "count": "3"})
    assert caught.value.argument == "count"
    with pytest.raises(ArgumentError) as caught:
        check_names(make, (), {"counts": 3})
    assert caught.value.argument == "counts"
    with pytest.raises(ArgumentError) as caught:
        check_names(make, ("a", 3), {})
    assert caught.value.argument is None


def test_advice_takes_the_place_of_a_suggestion():
    advice = {"give it to the optimizer": "lr learning_rate"}
    with pytest.raises(ArgumentError, match="'lr'"):
        check_names(make, (), {"lr": 0.1}, advice=advice)


def test_without_any_similar_argument_all_are_listed():
    assert unknown_argument("f", "zebra", ["a", "b"]) == "f has no argument 'zebra'. It takes a, b."
    assert unknown_argument("f", "zebra", []) == "f has no argument 'zebra'. It takes none."


def test_a_missing_attribute_is_translated_or_compared_with_those_there_are():
    peers = {"run.model": "net network"}
    assert str(missing_attribute(Path(), "net", peers)).endswith(
        "no attribute 'net'. It is run.model."
    )
    assert "Did you mean 'parent'?" in str(missing_attribute(Path(), "parnet", peers))
    assert (
        str(missing_attribute([], "__net__", peers)) == "'list' object has no attribute '__net__'."
    )
