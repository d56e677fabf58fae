"""Streams as one whole: their lengths, and what is replaced in them."""

import pytest

from hookloop.data.mixing.mixture import Mixture
from hookloop.engine.progress import Progress
from hookloop.errors import DataError

A, B = [1, 2, 3, 4, 5], [10, 20]
LENGTHS = {"zip": 2, "cycle": 5, "in order": 7}


def mixed(mix, **streams):
    return Mixture({"a": A, "b": B} | streams, mix, "train_data", seed=1)


@pytest.mark.parametrize("mix", LENGTHS)
def test_the_length_of_an_epoch(mix):
    assert mixed(mix).num_batches == LENGTHS[mix]
    assert mixed({"a": 3, "b": 1}).num_batches == 7


@pytest.mark.parametrize("mix", LENGTHS)
def test_another_length_is_noted_when_a_stream_is_replaced(mix):
    source, noted = mixed(mix), []
    source.follow(Progress(), noted.append)
    source.replace({"b": [1] * 6})
    assert noted == [{"zip": 5, "cycle": 6, "in order": 11}[mix]]


def test_streams_are_replaced_by_name():
    source = mixed("in order")
    source.replace({"b": [7, 8, 9]})
    assert [batch for (batch,) in source.groups(1)] == [*A, 7, 8, 9]
    with pytest.raises(DataError, match="'bb'.*'b'"):
        source.replace({"bb": []})
    with pytest.raises(DataError, match="replace one by its name"):
        source.replace([1, 2])


def test_what_is_not_exact_names_the_stream():
    class Unsized:
        def __iter__(self):
            return iter(B)

    assert mixed("zip").inexact is None
    assert "train_data['b']: " in mixed("zip", b=Unsized()).inexact
