from collections import UserDict, namedtuple
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from hookloop.data.ranks.cut import Cut
from hookloop.data.ranks.place import Share
from hookloop.errors import DataError

Pair = namedtuple("Pair", ["inputs", "targets"])


@dataclass
class Sample:
    inputs: torch.Tensor
    names: list
    scale: float = 1.0


class Encoding(UserDict):
    """Like the batches of tokenizers: more than its items, and other arguments."""

    def __init__(self, data=None, kind="plain"):
        super().__init__(data)
        self.kind = kind


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [103, 7, 4, 3, 1])
def test_the_cuts_of_all_ranks_are_the_batch(size, count):
    batch, found, owns = list(range(count)), [], []
    for rank in range(size):
        cut = Cut(rank, size)
        own = cut.indices(batch)
        (share,) = cut.shares
        assert share.total == count
        assert own == [0] if not share.own else len(own) == share.own
        found += own[: share.own]
        owns.append(share.own)
    assert found == batch
    assert max(owns) - min(owns) <= 1


def test_shares_are_queued_in_the_order_of_reading():
    cut = Cut(1, 2)
    cut.indices([1, 2, 3])
    cut.batch(torch.zeros(4, 2))
    cut.batch(torch.zeros(1, 2))
    cut.count(torch.zeros(6, 2))
    assert list(cut.shares) == [Share(1, 3), Share(2, 4), Share(0, 1), Share(6, None)]


NUMBERS = torch.arange(5)
NAMES = list("abcde")

BATCHES = {
    "tensor": NUMBERS,
    "array": NUMBERS.numpy(),
    "pair": (NUMBERS, NUMBERS * 2.0),
    "nested": ((NUMBERS, NUMBERS + 1), {"names": NAMES, "step": 3, "nothing": None}),
    "named": Pair(NUMBERS, {"y": NUMBERS}),
    "dataclass": Sample(NUMBERS, NAMES),
    "mapping": MappingProxyType({"x": NUMBERS}),
    "scalar beside": {"x": NUMBERS, "temperature": torch.tensor(3.0), "count": np.int64(9)},
    "samples": [(torch.ones(2), n) for n in range(5)],
    "mappings": [{"image": torch.ones(3, 2 + n), "number": n} for n in range(5)],
    "images": ([torch.ones(3, 2 + n) for n in range(5)], [{"boxes": n} for n in range(5)]),
    "texts": (NAMES, list(range(5))),
    "fewer words": {"x": NUMBERS, "classes": ["cat", "dog"]},
}


def flatten(value, path=""):
    """Return the parts of a batch by their paths."""
    if isinstance(value, Sample):
        value = vars(value)
    if isinstance(value, Pair):
        value = value._asdict()
    if isinstance(value, dict | MappingProxyType | UserDict):
        parts = value.items()
    elif isinstance(value, tuple):
        parts = enumerate(value)
    else:
        return {path: value}
    return {k: v for name, part in parts for k, v in flatten(part, f"{path}.{name}").items()}


@pytest.mark.parametrize("size", [2, 3, 4, 7])
@pytest.mark.parametrize("kind", BATCHES)
def test_a_batch_of_any_form_is_cut(kind, size):
    whole, joined = BATCHES[kind], {}
    for rank in range(size):
        cut = Cut(rank, size, "train_data")
        part = cut.batch(whole)
        assert type(part) is type(whole)
        (share,) = cut.shares
        assert share.total == 5
        for path, value in flatten(part).items():
            is_cut = hasattr(value, "__len__") and not isinstance(value, str)
            if is_cut and path != ".classes" and getattr(value, "ndim", 1):
                assert len(value) == max(share.own, 1)
                joined.setdefault(path, []).extend(list(value)[: share.own])
            else:
                joined[path] = value
    expected = flatten(whole)
    assert joined.keys() == expected.keys()
    for path, value in expected.items():
        found = joined[path]
        if isinstance(value, torch.Tensor | np.ndarray) and value.ndim:
            assert [one.item() for one in found] == value.tolist()
        elif isinstance(value, list):
            assert len(found) == len(value)
            assert all(one is other for one, other in zip(found, value, strict=True))
        else:
            assert found is value


def test_a_list_stays_a_list():
    part = Cut(0, 2).batch([NUMBERS, {"y": NUMBERS}])
    assert type(part) is list
    assert part[0].tolist() == part[1]["y"].tolist() == [0, 1, 2]


def test_a_mapping_of_its_own_type_keeps_its_attributes():
    batch = Encoding({"ids": NUMBERS}, kind="fast")
    part = Cut(1, 2).batch(batch)
    assert type(part) is Encoding and part.kind == "fast"
    assert part["ids"].tolist() == [3, 4]
    assert batch["ids"] is NUMBERS


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (7, "its batch is int, and nothing in it can be cut"),
        ((NUMBERS, torch.zeros(3, 5)), "its batch[1] is float32[3, 5] in a batch of 5 samples"),
        ({"x": NUMBERS, "graph": object()}, "its batch['graph'] is object, which cannot be cut"),
        (pack_sequence([torch.ones(3), torch.ones(2)]), "nothing in it can be cut"),
        (((torch.ones(2, 3), torch.ones(2, 3)), torch.ones(2)), "not clear whether each value"),
    ],
)
def test_what_cannot_be_cut_is_reported_with_what_to_do(batch, message):
    with pytest.raises(DataError) as caught:
        Cut(0, 2, "val_data['clean']").batch(batch)
    text = str(caught.value)
    assert text.startswith("val_data['clean'] cannot be cut for 2 processes: ")
    assert message in text
    assert "DataLoader over a map-style data set" in text and "shard(rank, size)" in text
    assert caught.value.argument == "val_data"


def test_one_process_takes_also_what_cannot_be_cut():
    cut, batch = Cut(0, 1), object()
    assert cut.batch(batch) is batch
    assert list(cut.shares) == [Share(1, 1)]


@pytest.mark.parametrize(
    ("full", "small"),
    [
        (
            ((torch.ones(6, 3), torch.ones(6, 3)), torch.ones(6)),
            ((torch.ones(2, 3), torch.ones(2, 3)), torch.ones(2)),
        ),
        (
            ([torch.ones(2, n) for n in range(6)], torch.ones(6)),
            ([torch.ones(2, n) for n in range(2)], torch.ones(2)),
        ),
    ],
    ids=["parts", "samples"],
)
def test_a_small_batch_is_cut_like_the_full_ones_before_it(full, small):
    cut = Cut(1, 2)
    first, second = cut.batch(full), cut.batch(small)
    if len(full[0]) == 2:  # Two inputs.
        assert [len(one) for one in first[0]] == [3, 3]
        assert [len(one) for one in second[0]] == [1, 1]
    else:
        assert [one.shape[1] for one in first[0]] == [3, 4, 5]
        assert [one.shape[1] for one in second[0]] == [1]
