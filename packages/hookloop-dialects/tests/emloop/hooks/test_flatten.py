"""Flat copies of nested variables."""

import numpy as np
import pytest

from hookloop_dialects.emloop.hooks import Flatten


@pytest.mark.parametrize(
    ("value", "flat"),
    [
        ([[1, [2, 3]], 4], [1, 2, 3, 4]),
        (np.arange(4).reshape(2, 2), [0, 1, 2, 3]),
        (["ab", ["cd"]], ["ab", "cd"]),
        ([], []),
    ],
)
def test_nesting_of_any_depth_is_removed(value, flat):
    batch = {"x": value}
    Flatten({"x": "flat"}).after_batch("train", batch)
    assert batch["flat"] == flat


def test_only_the_listed_streams_are_changed():
    hook, batch = Flatten({"x": "flat"}, streams=["valid"]), {"x": [[1]]}
    hook.after_batch("train", batch)
    assert "flat" not in batch
    hook.after_batch("valid", batch)
    assert batch["flat"] == [1]


def test_a_missing_variable_and_an_empty_list_are_rejected():
    with pytest.raises(KeyError, match="Did you mean 'labels'"):
        Flatten({"lables": "flat"}).after_batch("train", {"labels": []})
    with pytest.raises(AssertionError, match="at least one variable"):
        Flatten({})
