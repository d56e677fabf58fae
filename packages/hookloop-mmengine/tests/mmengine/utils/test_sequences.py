"""Lists, tuples and what is in them."""

import collections

import pytest

import hookloop_mmengine as mmengine


def test_a_value_is_repeated_and_a_sequence_is_kept():
    assert mmengine.to_2tuple(3) == (3, 3)
    assert mmengine.to_3tuple([1]) == [1]
    assert mmengine.to_ntuple(5)("a") == "a"
    assert (mmengine.to_1tuple(1), mmengine.to_4tuple(0)) == ((1,), (0, 0, 0, 0))


def test_entries_are_converted():
    assert mmengine.list_cast(["1", 2.5], int) == [1, 2]
    assert mmengine.tuple_cast((1,), str) == ("1",)
    assert next(mmengine.utils.iter_cast([1], str)) == "1"
    with pytest.raises(TypeError, match="must be an iterable"):
        mmengine.list_cast(3, int)
    with pytest.raises(TypeError, match='"dst_type" must be a valid type'):
        mmengine.list_cast([3], "int")


def test_lists_are_cut_and_joined():
    assert mmengine.slice_list([1, 2, 3, 4], 2) == [[1, 2], [3, 4]]
    assert mmengine.slice_list([1, 2, 3], [0, 1, 2]) == [[], [1], [2, 3]]
    assert mmengine.concat_list([[1], [], [2, 3]]) == [1, 2, 3]
    with pytest.raises(ValueError, match="does not match: 1 != 3"):
        mmengine.slice_list([1, 2, 3], [1])
    with pytest.raises(TypeError, match="an integer or a list"):
        mmengine.slice_list([1], "a")
    with pytest.raises(AssertionError, match="cannot be cut"):
        mmengine.slice_list([1, 2, 3], 2)


def test_values_in_nested_data_are_changed():
    pair = collections.namedtuple("Pair", "a b")
    data = {"x": [1, (2, "a")], "y": pair(3, [4])}
    changed = mmengine.apply_to(data, lambda value: isinstance(value, int), lambda value: -value)
    assert changed == {"x": [-1, (-2, "a")], "y": pair(-3, [-4])}
    assert type(changed["y"]) is pair
