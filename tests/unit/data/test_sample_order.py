import random

import numpy as np
import pandas
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, TensorDataset, random_split

from hookloop.data.stream import Stream

COUNT = 40


class Held(Dataset):
    """Samples in an order that it keeps."""

    def __init__(self, order):
        self.order = order
        self.cache = [None] * COUNT

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        self.cache[index] = torch.zeros(1)
        return torch.tensor(float(index))


def loader_of(dataset):
    return DataLoader(dataset, batch_size=4)


def split(seed):
    generator = torch.Generator().manual_seed(seed)
    return random_split(range(COUNT), [0.8, 0.2], generator=generator)[0]


def permuted(seed):
    return torch.randperm(COUNT, generator=torch.Generator().manual_seed(seed))


def texts(seed):
    return [(f"{number}.png", 1) for number in permuted(seed).tolist()]


def pandas_table(seed):
    return pandas.DataFrame({"path": [path for path, _ in texts(seed)], "label": 1})


KINDS = {
    "list of numbers": lambda seed: loader_of(Held(permuted(seed).tolist())),
    "list of texts": lambda seed: loader_of(Held(texts(seed))),
    "array": lambda seed: loader_of(Held(permuted(seed).numpy())),
    "tensor": lambda seed: loader_of(Held(permuted(seed))),
    "table": lambda seed: loader_of(Held(pandas_table(seed))),
    "dicts": lambda seed: loader_of(Held([{"at": one} for one in permuted(seed).tolist()])),
    "tensors": lambda seed: loader_of(TensorDataset(permuted(seed).float())),
    "split": lambda seed: loader_of(split(seed)),
    "concatenated": lambda seed: loader_of(
        ConcatDataset([Held([1] * COUNT), Held(texts(seed))]),
    ),
    "list of batches": lambda seed: list(torch.rand(5, 3).add(permuted(seed)[:5, None])),
}


@pytest.mark.parametrize("kind", KINDS)
def test_data_that_is_built_in_another_order_is_named_at_the_resume(kind, caplog):
    torch.manual_seed(0)
    first = Stream(KINDS[kind](1), "train_data")
    next(first.groups(1))
    state = first.state_dict()
    torch.manual_seed(0)
    Stream(KINDS[kind](1), "train_data").load_state_dict(state)
    assert not caplog.records
    Stream(KINDS[kind](2), "train_data").load_state_dict(state)
    assert "train_data has changed" in caplog.text and "not exact" in caplog.text


def shuffle(values):
    if isinstance(values, torch.Tensor):
        values.copy_(values[torch.randperm(len(values))])
    elif isinstance(values, np.ndarray):
        np.random.shuffle(values)
    else:
        random.shuffle(values)


@pytest.mark.parametrize("kind", ["list of numbers", "list of texts", "array", "tensor"])
def test_data_that_shuffles_itself_during_the_run_is_named_once(kind, caplog):
    source = Stream(KINDS[kind](1), "train_data")
    list(source.groups(1))
    list(source.groups(1))
    source.state_dict()
    assert not caplog.records  # A cache that fills is not a new order.
    shuffle(source.data.dataset.order)
    list(source.groups(1))
    source.state_dict()
    assert [record.getMessage()[:75] for record in caplog.records] == [
        "A resume of train_data may not be exact: its data set's 'order' was reorder"
    ]


def test_a_list_of_batches_that_is_reordered_is_named(caplog):
    batches = [torch.rand(2) for _ in range(20)]
    source = Stream(batches, "train_data")
    random.shuffle(batches)
    source.state_dict()
    assert "it was reordered during the run" in caplog.text


def test_a_data_set_with_a_state_continues_in_its_order(caplog):
    class Stateful(Held):
        def state_dict(self):
            return {"order": list(self.order)}

        def load_state_dict(self, state):
            self.order = state["order"]

        def __getitem__(self, index):
            return self.order[index]

    def source():
        return Stream(loader_of(Stateful(list(range(COUNT)))), "train_data")

    first = source()
    shuffle(first.data.dataset.order)
    groups = first.groups(1)
    next(groups)
    second = source()
    second.load_state_dict(first.state_dict())
    assert [g[0].tolist() for g in second.groups(1)] == [g[0].tolist() for g in groups]
    assert not caplog.records


def itself():
    held = [1]
    held.append(held)
    return held


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8),
        lambda: torch.ones(4, dtype=torch.complex64).conj(),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: np.array([(1, "a")], dtype=[("x", int), ("y", object)]),
        lambda: np.ones(3, np.longdouble),
        itself,
    ],
    ids=["quantized", "conjugate", "nested", "objects", "long", "itself"],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_of_any_kind_may_be_held(make, caplog):
    held = make()
    source = Stream(loader_of(Held(held)), "train_data")
    Stream(loader_of(Held(held)), "train_data").load_state_dict(source.state_dict())
    assert not caplog.records


def test_deep_lists_are_looked_at_in_few_places():
    looked = []

    class Counting(list):
        def __getitem__(self, index):
            looked.append(index)
            return super().__getitem__(index)

    samples = [Counting([Counting([Counting([0] * 100)] * 100)] * 100)] * 100
    Stream(loader_of(Held(samples)), "train_data")
    assert len(looked) < 60_000
