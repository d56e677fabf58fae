"""``hookloop verify-hooks``: which differences between two trainings count."""

from dataclasses import replace

import pytest

from hookloop.short_runs.verify_hooks import Ending

ENDING = Ending([], 4, {"w": "1", "b": "2"}, {"iteration 1, train/loss": "0x1"})


def test_the_same_training_has_no_changes() -> None:
    assert ENDING.changes(replace(ENDING)) == ""


@pytest.mark.parametrize(
    ("other", "changes"),
    [
        (replace(ENDING, iters=3), "the length: 3 iterations, not 4"),
        (replace(ENDING, weights={"w": "9", "b": "2"}), "the weights: w"),
        (replace(ENDING, weights={"w": "9", "b": "9"}), "the weights: w and 1 more"),
        (
            replace(ENDING, numbers={"iteration 1, train/loss": "0x2"}),
            "the numbers: iteration 1, train/loss",
        ),
        (
            replace(ENDING, iters=3, weights={}),
            "the length: 3 iterations, not 4; the weights: w and",
        ),
    ],
)
def test_what_is_different_is_named(other: Ending, changes: str) -> None:
    assert ENDING.changes(other).startswith(changes)


def test_a_number_that_only_one_training_has_does_not_count() -> None:
    more = {**ENDING.numbers, "iteration 1, train/size": "0x1"}
    assert ENDING.changes(replace(ENDING, numbers=more)) == ""
    assert ENDING.changes(replace(ENDING, numbers={})) == ""
