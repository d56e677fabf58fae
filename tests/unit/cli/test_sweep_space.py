"""What a sweep varies, as it is written on the command line."""

import pytest

from hookloop.cli.search.sweep_space import (
    Choices,
    Folds,
    Range,
    combinations,
    describe,
    first_values,
    grid,
    overrides,
    parse_folds,
    split,
)
from hookloop.errors import HookloopError


def test_ranges_and_lists_vary_and_everything_else_is_an_override():
    space, fixed = split(
        ["a.lr=log(1e-4, 1e-2)", "b=uniform(0,0.5)", "c=int(1,4)", "d=int(8,64,log)", "e=[1,x]",
         "max_epochs=3", "name=f(x"]
    )  # fmt: skip
    assert space == {
        "a.lr": Range(1e-4, 1e-2, is_log=True),
        "b": Range(0, 0.5),
        "c": Range(1, 4, is_whole=True),
        "d": Range(8, 64, is_log=True, is_whole=True),
        "e": Choices((1, "x")),
    }
    assert fixed == ["max_epochs=3", "name=f(x"]


def test_a_choice_that_is_a_list_is_kept_as_text_and_read_back():
    space, _ = split(["widths=[[8, 8], [16]]", "schedule=[null, {type: StepLR, step_size: 3}]"])
    widths = space["widths"]
    assert isinstance(widths, Choices)
    assert widths.values == ("[8, 8]", "[16]")
    assert space["schedule"] == Choices((None, "{step_size: 3, type: StepLR}"))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("lr=logg(1,2)", "Did you mean 'log'"),
        ("lr=log(0,2)", "above 0"),
        ("lr=uniform(2,1)", "the first below the second"),
        ("lr=int(1.5,3)", "whole numbers"),
        ("lr=log(1)", "is not a range"),
        ("lr=uniform(1,2,3)", "is not a range"),
        ("lr=uniform(a,b)", "is not a range"),
        ("lr=uniform(0,inf)", "is not a range"),
        ("lr=[]", "nothing to choose from"),
    ],
)
def test_what_is_no_range_is_rejected(word, message):
    with pytest.raises(HookloopError, match=message):
        split([word])


def test_what_is_not_yaml_is_left_to_the_overrides_which_reject_it():
    assert split(["model.width=[4"]) == ({}, ["model.width=[4"])


def test_folds_need_a_key_and_a_count():
    assert parse_folds("vars.fold=5") == Folds("vars.fold", 5)
    for wrong in ("vars.fold", "vars.fold=1", "=3", "vars.fold=x"):
        with pytest.raises(HookloopError, match="KEY=COUNT"):
            parse_folds(wrong)


def test_a_grid_has_every_combination_of_lists_and_whole_numbers():
    space, _ = split(["a=[1,2]", "b=int(3,5)"])
    assert grid(space) == {"a": [1, 2], "b": [3, 4, 5]}
    assert combinations(space) == 6
    with pytest.raises(HookloopError, match="cannot try every value of lr"):
        grid(split(["lr=log(1,2)"])[0])


def test_values_become_overrides_that_a_config_reads():
    chosen = {"lr": 1e-05, "on": False, "none": None, "kind": "Adam", "width": 3}
    assert overrides(chosen) == ["lr=1e-05", "on=false", "none=null", "kind=Adam", "width=3"]


def test_one_value_of_each_is_tried_first():
    space, _ = split(["a=[x,y]", "b=int(3,5)", "c=uniform(0.5,1)"])
    assert first_values(space) == {"a": "x", "b": 3, "c": 0.5}
    assert describe(space)["a"] == ["x", "y"]
