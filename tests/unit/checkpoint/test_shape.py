import math

import numpy as np
import pytest
import torch

from hookloop.checkpoint.state.shape import (
    LARGEST,
    Each,
    Maybe,
    Named,
    check_state,
    find_mismatch,
    has_same_form,
    is_bytes,
    is_count,
    is_flag,
    is_mapping,
    is_number,
    is_scalar,
    is_tensor,
    is_text,
    one_of,
)


@pytest.mark.parametrize(
    ("accepts", "good", "bad"),
    [
        (is_count, [0, 3, LARGEST - 1], [-1, LARGEST, True, 1.0, "1", None]),
        (is_number, [0, -3, 0.5, math.nan], [True, LARGEST, -LARGEST, "1", None]),
        (is_flag, [True, False], [0, 1, None, "yes"]),
        (is_text, ["", "a"], [b"a", 1, None]),
        (is_bytes, [torch.zeros(2, dtype=torch.uint8)], [torch.zeros(2), b"a"]),
        (is_tensor, [torch.zeros(2)], [np.zeros(2), [0.0]]),
        (is_scalar, [torch.tensor(1.0), torch.ones(1, 1)], [torch.ones(2), 1.0]),
        (is_mapping, [{}, {"a": 1}], [[], None]),
        (one_of("a", "b", 1), ["a", 1], ["c", True, torch.ones(2), None]),
    ],
)
def test_each_kind_of_value_is_told_from_others(accepts, good, bad):
    assert [value for value in good if not accepts(value)] == []
    assert [value for value in bad if accepts(value)] == []


SHAPE = {
    "iter": is_count,
    "note?": is_text,
    "best?": Maybe(is_number),
    "rates?": Each(is_number),
    "pair?": Each(is_count, 2),
    "values?": Named({"sum": is_number}),
}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"iter": 3}, None),
        ({"iter": 3, "best": None, "rates": (0.1, 2), "pair": [1, 2], "unknown": object()}, None),
        ({"iter": 3, "values": {"loss": {"sum": 1.0}}}, None),
        ({}, "state.iter"),
        ([], "state"),
        ({"iter": -1}, "state.iter"),
        ({"iter": 3, "note": 5}, "state.note"),
        ({"iter": 3, "best": "high"}, "state.best"),
        ({"iter": 3, "rates": [0.1, "x"]}, "state.rates[1]"),
        ({"iter": 3, "rates": {0: 0.1}}, "state.rates"),
        ({"iter": 3, "pair": [1]}, "state.pair"),
        ({"iter": 3, "values": {"loss": {}}}, "state.values.loss.sum"),
        ({"iter": 3, "values": {7: {"sum": 1.0}}}, "state.values"),
    ],
)
def test_the_first_wrong_entry_is_named(value, path):
    assert find_mismatch(value, SHAPE, "state") == path
    if path is None:
        check_state(value, SHAPE)
    else:
        with pytest.raises(ValueError, match=f"'{path.replace('[', '.')}".rstrip("]")):
            check_state(value, SHAPE)


@pytest.mark.parametrize(
    ("value", "own"),
    [
        ({"n": 5}, {"n": 1}),
        ({"n": 5, "more": "x"}, {"n": 1}),
        ({}, {"n": 1}),
        (None, 0.5),
        (object(), None),
        ([1, 2, 3], []),
        ((1, 2), [7]),
        (2**60, 2**61),
        (torch.zeros(9), torch.zeros(2)),
        ("b", "a"),
    ],
)
def test_another_state_of_the_same_object_has_the_same_form(value, own):
    assert has_same_form(value, own)


@pytest.mark.parametrize(
    ("value", "own"),
    [
        ({"n": "five"}, {"n": 1}),
        ([1], {"n": 1}),
        ("1", 0.5),
        (2**60, 3),
        (["x"], [1]),
        (torch.zeros(2), torch.zeros(2, dtype=torch.int64)),
        (1, "a"),
        (1, True),
    ],
)
def test_a_state_of_something_else_has_another_form(value, own):
    assert not has_same_form(value, own)
