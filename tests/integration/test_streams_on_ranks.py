"""Several training streams on many ranks: the batches and updates of one process, exact resumes."""

import signal
from itertools import product

import pytest
from tests.integration.many_ranks import KillAt, Net, Plain, data, distance, is_equal, train
from tests.ranks import each_rank, on_ranks
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader

from hookloop import Hook

pytestmark = pytest.mark.slow

LONG = pytest.mark.long  # Beside a smaller case of the same.


class Seen(Hook):
    """Remembers which samples of each stream this rank trained on, by iteration."""

    def __init__(self):
        self.seen = {}

    def before_forward(self, run):
        if run.phase == "train":
            names = {
                name: named(inputs)[: own_of(run, name, len(inputs))]
                for name, (inputs, _) in run.batch.items()
            }
            self.seen.setdefault(run.progress.iter, []).append(names)


def named(inputs):
    return inputs[:, 0].mul(1000).round().int().tolist()


def own_of(run, name, count):
    return count if run.place is None else run.place.streams[name].own


def of_each(run, batch):
    """Return the loss of each stream, as a step may."""
    if not isinstance(batch, dict):
        return mse_loss(run.model(batch[0]), batch[1])
    return {"loss": {name: mse_loss(run.model(x), y) for name, (x, y) in batch.items()}}


def of_all(run, batch):
    losses = of_each(run, batch)
    return sum(losses["loss"].values()) if isinstance(losses, dict) else losses


def streams(sizes=(8, 6), workers=0, **options):
    """Return streams whose last batches are short: one sample of 25, and five of 41."""
    counts = zip((25, 41), sizes, strict=True)
    return {
        name: DataLoader(
            data(count, seed), batch_size=size, shuffle=True, num_workers=workers, **options
        )
        for seed, (name, (count, size)) in enumerate(zip("ab", counts, strict=True))
    }


def train_streams(run_dir, mix, *, hooks=(), step=of_each, model=Plain, sizes=(8, 6), **changes):
    seen = Seen()
    settings = {"train_data": streams(sizes), "data": {"mix": mix}, "loss": None, "step": step}
    result = train(run_dir, model=model, names=False, hooks=[seen, *hooks], **(settings | changes))
    return {**result, "seen": seen.seen}


def joined(results):
    """Return the samples of each iteration and stream, those of all ranks in order."""
    return {
        number: [
            {name: [n for one in of_ranks for n in one[index][name]] for name in "ab"}
            for index in range(len(of_ranks[0]))
        ]
        for number in results[0]["seen"]
        for of_ranks in [[result["seen"][number] for result in results]]
    }


def cases(everyday, *others):
    return [*everyday, *(pytest.param(*one, marks=LONG) for one in product(*others))]


@pytest.mark.parametrize(
    ("mix", "accumulate", "size"),
    cases([("zip", 1, 2), ("cycle", 2, 3)], ["zip", "cycle"], [1, 2], [2, 3]),
)
def test_ranks_compute_what_one_process_computes(tmp_path, mix, accumulate, size):
    changes = {"accumulate": accumulate, "clip_norm": 1.0}
    alone = train_streams(tmp_path / "alone", mix, **changes)
    together = on_ranks(lambda: train_streams(tmp_path / "run", mix, **changes), size)
    assert all(is_equal(together[0], result) for result in together)
    assert joined(together) == alone["seen"]
    assert distance(alone, together[0]) < 1e-6
    for name, value in alone["metrics"].items():
        assert together[0]["metrics"][name] == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize(
    ("mix", "size", "strategy"),
    cases(
        [("zip", 2, "sharded"), ("cycle", 3, "replicated")],
        ["zip", "cycle"],
        [2, 3],
        ["replicated", "sharded"],
    ),
)
def test_killed_it_continues_to_the_same_bits(tmp_path, mix, size, strategy):
    changes = {"model": Net, "parallel": strategy, "max_epochs": 4, "save_every": 2}
    changes["train_data"] = streams(drop_last=True)  # Batch norm needs two samples on each rank.
    whole = on_ranks(lambda: train_streams(tmp_path / "whole", mix, **changes), size)
    killing = [KillAt("before_update", 9, [size - 1])]
    ends = each_rank(lambda: train_streams(tmp_path / "cut", mix, hooks=killing, **changes), size)
    assert -signal.SIGKILL in [end.code for end in ends]
    continued = on_ranks(lambda: train_streams(tmp_path / "cut", mix, **changes), size)
    for before, after in zip(whole, continued, strict=True):
        assert is_equal(before, after)
        assert len(after["seen"]) < len(before["seen"])
        assert after["seen"].items() <= before["seen"].items()
        assert after["metrics"] == before["metrics"]


@pytest.mark.parametrize(
    ("mix", "before", "after"),
    cases([("zip", 3, 2), ("cycle", 2, 3)], ["zip", "cycle"], [1, 3], [2, 3, 1]),
)
def test_it_continues_on_another_number_of_ranks(tmp_path, mix, before, after):
    def work(name, size, *hooks):
        changes = {"max_epochs": 3, "save_every": 2, "hooks": hooks}
        return each_rank(lambda: train_streams(tmp_path / name, mix, **changes), size)

    whole = [end.value for end in work("whole", before)]
    work("cut", before, KillAt("before_update", 9, [0]))
    continued = [end.value for end in work("cut", after)]
    assert joined(continued).items() <= joined(whole).items()
    assert 0 < min(joined(continued)) <= 8
    assert distance(whole[0], continued[0]) < 1e-6


def test_streams_with_workers_give_the_same_batches(tmp_path):
    def work(workers):
        return train_streams(
            tmp_path / str(workers), "cycle", train_data=streams(workers=workers), max_epochs=1
        )

    plain, loaded = on_ranks(lambda: (work(0), work(1)), 2)
    assert plain[0]["seen"] == plain[1]["seen"] and loaded[0]["seen"] == loaded[1]["seen"]
    assert is_equal(*plain)


@pytest.mark.parametrize(
    ("sizes", "options", "is_told"),
    [
        ((8, 6), {}, True),
        ((8, 4), {"drop_last": True}, False),
        ((8, 8), {"drop_last": True}, False),
    ],
)
def test_one_loss_of_all_streams_is_exact_if_they_are_cut_alike(
    tmp_path, capfd, sizes, options, is_told
):
    changes = {"step": of_all, "train_data": streams(sizes, **options), "sizes": sizes}
    alone = train_streams(tmp_path / "alone", "zip", **changes)
    together = on_ranks(lambda: train_streams(tmp_path / "run", "zip", **changes), 2)
    log = (tmp_path / "run" / "run.log").read_text()
    assert ("Return the loss of each stream, {'loss': {'a': ..., 'b': ...}}" in log) is is_told
    assert log.count("cannot be weighted") == is_told
    assert (distance(alone, together[0]) < 1e-6) is not is_told


class NameStreams(Hook):
    """Remembers of which stream each microbatch is said to be, and its samples."""

    def __init__(self):
        self.seen = []

    def before_forward(self, run):
        if run.phase == "train":
            self.seen.append((run.stream, named(run.batch[0])))


def test_each_microbatch_of_a_group_is_said_to_be_of_its_stream(tmp_path):
    def train_drawn():
        names = NameStreams()
        mixed = {"train_data": streams((6, 6)), "data": {"mix": {"a": 1, "b": 1}}, "accumulate": 3}
        train(tmp_path / "run", model=Plain, names=False, hooks=[names], max_epochs=1, **mixed)
        return names.seen

    of = {name: set(named(loader.dataset[:][0])) for name, loader in streams().items()}
    for seen in on_ranks(train_drawn, 2):
        assert {name for name, _ in seen} == {"a", "b"}
        assert all(set(samples) <= of[name] for name, samples in seen)
