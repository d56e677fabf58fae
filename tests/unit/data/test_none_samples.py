import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

from hookloop import Trainer


class Holes(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return (torch.ones(2), 0) if index != 13 else None


class StreamWithHoles(IterableDataset):
    def __iter__(self):
        return (Holes()[index] for index in range(32))


def collate(samples):
    return torch.stack([one for one, _ in samples]), torch.tensor([label for _, label in samples])


def leave_out(samples):
    return collate([one for one in samples if one is not None])


def make(loader, **how):
    model = torch.nn.Linear(2, 2)
    return Trainer(
        model,
        train_data=loader,
        loss=torch.nn.CrossEntropyLoss(),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
        default_hooks=False,
        **how,
    )


def said(error):
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [{}, {"data": {"seed_samples": "workers"}}, {"data": {"seed_samples": False}}]
)
@pytest.mark.parametrize("collate_fn", [None, collate])
@pytest.mark.parametrize("workers", [0, 2])
def test_the_index_of_a_sample_that_is_none_is_named(workers, collate_fn, how):
    data = DataLoader(Holes(), 8, shuffle=True, num_workers=workers, collate_fn=collate_fn)
    with pytest.raises(TypeError) as caught:
        make(data, **how).train()
    assert "Holes gave None as a sample, index 13" in said(caught.value)


@pytest.mark.parametrize("kind", ["a part", "a subset"])
def test_parts_that_are_none_and_subsets_have_the_index_too(kind):
    class Parts(Holes):
        def __getitem__(self, index):
            return (torch.ones(2), 0 if index != 13 else None)

    data = Parts() if kind == "a part" else Subset(Subset(Holes(), range(12, 32)), [3, 1, 2, 0])
    with pytest.raises((TypeError, RuntimeError)) as caught:
        make(DataLoader(data, 4)).train()
    assert "index 13:" in said(caught.value)


def test_it_is_named_in_a_validation():
    data = DataLoader(Holes(), 8, sampler=range(8))
    with pytest.raises(TypeError) as caught:
        make(data, val_data=DataLoader(Holes(), 8)).train()
    assert "index 13" in said(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_an_iterable_data_set_has_a_place_in_the_batch(workers):
    with pytest.raises(TypeError) as caught:
        make(DataLoader(StreamWithHoles(), 8, num_workers=workers)).train()
    assert "place in the batch 6" in said(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_collate_fn_may_leave_none_out(workers):
    data = DataLoader(Holes(), 8, num_workers=workers, collate_fn=leave_out)
    assert make(data).train().status == "completed"
