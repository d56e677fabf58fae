"""A run that is resumed with other batches continues after the samples that it has read."""

import json
import logging
from queue import SimpleQueue

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler, WeightedRandomSampler

from hookloop import Trainer
from hookloop.hooks import SaveCheckpoint
from hookloop.testing import assert_same_bits

SAMPLES = 23


class Numbered(Dataset):
    """Samples that are their own number."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return torch.tensor([float(index)]), index


def make_loader(size, *, drop_last=False, sampler=None, workers=0, generator=None):
    return DataLoader(
        Numbered(),
        batch_size=size,
        shuffle=sampler is None,
        sampler=sampler,
        drop_last=drop_last,
        num_workers=workers,
        generator=generator,
    )


def train(run_dir, loader, *, stop_at=None, accumulate=1, max_epochs=2, **options):
    """Train; return the numbers of the samples of each update, and the trainer."""
    torch.manual_seed(3)
    model = torch.nn.Linear(1, 1)
    read = SimpleQueue()  # A list would be that of the checkpoint after a resume.

    def step(run, batch):
        inputs, numbers = batch
        read.put((run.progress.iter, numbers.tolist()))
        return (run.model(inputs) * 1e-3).square().mean()

    trainer = Trainer(
        model,
        train_data=loader,
        step=step,
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-4),
        accumulate=accumulate,
        max_epochs=max_epochs,
        seed=7,
        default_hooks={"console": None, "checkpoint": SaveCheckpoint("1 iter", keep=2)},
        run_dir=run_dir,
        **options,
    )
    if stop_at is not None:
        trainer.on("after_train_iter")(
            lambda run: run.stop("enough") if run.progress.iter == stop_at else None
        )
    trainer.train()
    seen = [[] for _ in range(trainer.run.progress.iter)]
    for _ in range(read.qsize()):
        iteration, numbers = read.get()
        seen[iteration].extend(numbers)
    return seen, trainer


def flat(groups):
    return [number for group in groups for number in group]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"), [((4, 1), (3, 1)), ((3, 1), (8, 1)), ((2, 2), (5, 3)), ((4, 1), (4, 2))]
)
@pytest.mark.parametrize(("stop_at", "drop_last"), [(1, False), (4, False), (2, True)])
def test_every_sample_of_the_epoch_is_read_once(before, after, stop_at, drop_last, tmp_path):
    (old, accumulate), (new, later) = before, after
    whole, _ = train(tmp_path / "whole", make_loader(old), max_epochs=1)
    first, cut = train(
        tmp_path / "run", make_loader(old), stop_at=stop_at, accumulate=accumulate, max_epochs=2
    )
    assert cut.run.progress.epoch == 0
    rest, resumed = train(
        tmp_path / "run", make_loader(new, drop_last=drop_last), accumulate=later, resume=True
    )
    epoch = flat(first) + flat(rest[: len(rest) - resumed.run.progress.epoch_iters])
    order = flat(whole)  # The order does not depend on the batch size.
    assert epoch == order[: len(epoch)]
    lost = (SAMPLES - len(flat(first))) % new if drop_last else 0
    assert len(epoch) == SAMPLES - lost
    second = flat(rest[len(rest) - resumed.run.progress.epoch_iters :])
    assert len(set(second)) == len(second) == (SAMPLES - SAMPLES % new if drop_last else SAMPLES)
    assert resumed.run.progress.epoch == 2


@pytest.mark.slow
def test_the_same_batch_size_continues_to_the_same_bits(tmp_path):
    _, whole = train(tmp_path / "whole", make_loader(4))
    train(tmp_path / "run", make_loader(4), stop_at=2)
    _, resumed = train(tmp_path / "run", make_loader(4), resume=True)
    assert_same_bits(whole.run.model, resumed.run.model)


@pytest.mark.slow
def test_a_second_cut_in_the_same_epoch_is_exact_again(tmp_path):
    """After the change, a run is cut once more: it continues to the bits of the changed run."""
    runs = {}
    for name, cuts in {"once": [], "twice": [5]}.items():
        train(tmp_path / name, make_loader(4), stop_at=3)
        for stop_at in cuts:
            train(tmp_path / name, make_loader(2), stop_at=stop_at, resume=True)
        runs[name] = train(tmp_path / name, make_loader(2), resume=True)[1].run
    assert runs["once"].progress.iter == runs["twice"].progress.iter
    assert_same_bits(runs["once"].model, runs["twice"].model)


@pytest.mark.parametrize("kind", ["weighted", "generator"])
def test_other_samplers_of_torch_continue_by_samples_too(kind, tmp_path):
    def loader(size):
        if kind == "weighted":
            return make_loader(size, sampler=WeightedRandomSampler(torch.ones(SAMPLES), SAMPLES))
        generator = torch.Generator().manual_seed(5)
        return make_loader(size, sampler=RandomSampler(Numbered(), generator=generator))

    whole, _ = train(tmp_path / "whole", loader(4), max_epochs=1)
    first, _ = train(tmp_path / "run", loader(4), stop_at=2)
    rest, resumed = train(tmp_path / "run", loader(3), resume=True, max_epochs=1)
    assert flat(first) + flat(rest) == flat(whole)
    assert resumed.run.progress.epoch == 1


@pytest.mark.slow
def test_with_workers_too(tmp_path):
    whole, _ = train(tmp_path / "whole", make_loader(4), max_epochs=1)
    first, _ = train(tmp_path / "run", make_loader(4, workers=2), stop_at=2)
    rest, _ = train(tmp_path / "run", make_loader(3, workers=1), resume=True, max_epochs=1)
    assert sorted(flat(first) + flat(rest)) == sorted(flat(whole))


def test_the_change_is_reported_with_the_position_in_samples(tmp_path, caplog):
    train(tmp_path, make_loader(4), stop_at=3)
    with caplog.at_level(logging.WARNING, "hookloop"):
        train(tmp_path, make_loader(5), resume=True)
    (message,) = [text for text in caplog.messages if "has changed" in text]
    assert "batch_size: 4 -> 5" in message
    assert "continues after 12 samples of the pass and reads the others once" in message


@pytest.mark.slow
def test_a_checkpoint_that_counts_batches_is_converted(tmp_path):
    """Version 0.2 kept the position in batches only."""
    first, cut = train(tmp_path, make_loader(4), stop_at=3)
    source = cut.run.train_data
    saved = {
        name: value
        for name, value in source.state_dict().items()
        if name not in ("samples", "samples_before")
    }
    assert saved["position"] == 3 and json.dumps(saved["measures"])
    other = train(tmp_path / "other", make_loader(5), stop_at=1)[1].run.train_data
    other.load_state_dict(saved)
    assert other.position == 0 and other.state_dict()["samples"] == 12
    rest = flat(numbers.tolist() for group in other.groups(1) for _, numbers in group)
    assert sorted(flat(first) + rest) == list(range(SAMPLES))


def test_a_batch_sampler_of_ones_own_continues_at_its_batch(tmp_path, caplog):
    class Pairs:
        def __init__(self, size):
            self.size = size

        def __iter__(self):
            return iter(torch.arange(20).split(self.size))

        def __len__(self):
            return -(-20 // self.size)

    def loader(size):
        return DataLoader(Numbered(), batch_sampler=Pairs(size))

    first, _ = train(tmp_path, loader(4), stop_at=2)
    rest, _ = train(tmp_path, loader(5), resume=True, max_epochs=1)
    assert flat(first) == list(range(8)) and flat(rest) == list(range(10, 20))


def test_a_limit_within_the_changed_epoch_ends_the_run_there(tmp_path):
    train(tmp_path, make_loader(2), stop_at=6)  # 12 of 23 samples, in 6 iterations
    _, resumed = train(tmp_path, make_loader(8), resume=True, max_iters=7, max_epochs=None)
    assert resumed.run.progress.iter == 7 and resumed.run.progress.epoch == 0
    _, ended = train(tmp_path, make_loader(8), resume=True, max_iters=8, max_epochs=None)
    assert ended.run.progress.iter == 8 and ended.run.progress.epoch == 1
