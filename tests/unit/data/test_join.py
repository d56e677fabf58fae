from typing import NamedTuple

import numpy as np
import pytest
import torch

from hookloop.data.outputs import by_name, join, to_cpu
from hookloop.errors import DataError


class Pair(NamedTuple):
    mean: torch.Tensor
    spread: torch.Tensor


def test_containers_keep_their_form():
    outputs = [Pair(torch.ones(2), torch.zeros(2, 3)), Pair(torch.ones(1), torch.ones(1, 3))]
    joined = join(outputs, [2, 1])
    assert isinstance(joined, Pair)
    assert joined.mean.tolist() == [1, 1, 1]
    assert joined.spread.shape == (3, 3)
    nested = join([{"a": [torch.ones(2), None]}, {"a": [torch.zeros(1), None]}], [2, 1])
    assert nested["a"][0].tolist() == [1, 1, 0]
    assert nested["a"][1] is None
    assert join([np.ones(2), np.zeros(1)], [2, 1]).tolist() == [1, 1, 0]


def test_a_list_with_an_entry_per_sample_is_made_longer():
    boxes = [[{"box": 1}, {"box": 2}], [{"box": 3}]]
    assert join(boxes, [2, 1]) == [{"box": 1}, {"box": 2}, {"box": 3}]
    # Two tensors with two rows each are two parts, not two samples.
    parts = join([(torch.ones(2), torch.zeros(2))] * 2, [2, 2])
    assert [len(part) for part in parts] == [4, 4]
    # Nor is a tuple of several results, if a batch happens to have as many samples.
    scores, more = join([(torch.ones(2), {"x": torch.ones(2)})], [2])
    assert len(scores) == len(more["x"]) == 2
    assert join([("cat", "dog"), ("owl",)], [2, 1]) == ["cat", "dog", "owl"]


def test_samples_of_different_lengths_stay_samples_whatever_their_lengths():
    # Three boxes in a batch of three, and one in a batch of one.
    lengths = [[3, 1, 0], [2, 3, 3], [1]]
    outputs = [[torch.ones(length, 4) for length in batch] for batch in lengths]
    joined = join(outputs, [3, 3, 1])
    assert [len(boxes) for boxes in joined] == [3, 1, 0, 2, 3, 3, 1]


def test_what_has_no_row_per_sample_is_not_mixed_up():
    hidden = [torch.ones(3, 2, 5), torch.ones(3, 1, 5)]
    assert [one.shape for one in join(hidden, [2, 1])] == [(3, 2, 5), (3, 1, 5)]
    assert join([torch.tensor(1.0), torch.tensor(2.0)], [2, 1]) == [1.0, 2.0]
    assert join(["a", "b"], [4, 4]) == ["a", "b"]


def test_rows_of_different_shapes_become_a_list_of_samples():
    rows = join([torch.ones(2, 3), torch.ones(1, 5)], [2, 1])
    assert [tuple(row.shape) for row in rows] == [(3,), (3,), (5,)]


def test_other_entries_than_before_are_rejected():
    with pytest.raises(DataError, match="batch 2 has the entries b"):
        join([{"a": torch.ones(1)}, {"b": torch.ones(1)}], [1, 1])


def test_a_copy_does_not_share_memory():
    output = {"x": torch.zeros(2, requires_grad=True)}
    copied = to_cpu(output)
    output["x"].data.fill_(1)
    assert copied["x"].tolist() == [0, 0]
    assert not copied["x"].requires_grad


def test_a_table_needs_an_entry_per_sample():
    left_out: set[str] = set()
    assert list(by_name({"logits": torch.ones(2, 3), "past": None}, 2, left_out)) == ["logits"]
    assert by_name(["cat", "dog"], 2, left_out) == {"output": ["cat", "dog"]}
    with pytest.raises(DataError, match=r"\(\).*2 samples"):
        by_name(torch.tensor(1.0), 2, left_out)
    with pytest.raises(DataError, match="is a object, which fits no table"):
        by_name(object(), 2, left_out)
    assert not left_out


def test_entries_of_a_mapping_without_a_row_per_sample_are_left_out_and_named():
    left_out: set[str] = set()
    output = {"loss": torch.tensor(1.0), "logits": torch.ones(2, 3), "state": {"cache": object()}}
    assert list(by_name(output, 2, left_out)) == ["logits"]
    assert left_out == {"loss", "state_cache"}
