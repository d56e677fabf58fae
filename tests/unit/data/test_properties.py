"""What holds for any data: kills change nothing that is read, and ranks read the batch together."""

import random
from dataclasses import dataclass, fields
from io import BytesIO
from itertools import chain
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from hookloop.data.mixing.mixture import open_train_data
from hookloop.data.random.states import GeneratorStates, seed_all
from hookloop.data.ranks.cut import Cut
from hookloop.data.stream import Stream
from hookloop.engine.progress import Progress

FEW = settings(derandomize=True, deadline=None, max_examples=30, database=None)


# --- P1: any data, read with and without kills ----------------------------------------------------

GROUPS = 24
"""How many groups are read of what has no end."""


@dataclass(frozen=True)
class Loader:
    """One `DataLoader` of numbers from ``first`` on."""

    samples: int
    size: int
    shuffle: bool
    drop_last: bool

    def make(self, first):
        samples = range(first, first + self.samples)
        return DataLoader(
            samples, batch_size=self.size, shuffle=self.shuffle, drop_last=self.drop_last
        )


@st.composite
def loaders(draw):
    samples = draw(st.integers(1, 13))
    size = draw(st.integers(1, 5))
    drops = draw(st.booleans()) and samples >= size
    return Loader(samples, size, draw(st.booleans()), drops)


@dataclass(frozen=True)
class Case:
    """What is read, in which groups, by how many ranks, and how often it is killed."""

    parts: tuple[Loader, ...]
    mix: object
    limit: int | None
    accumulate: int
    ranks: int | None
    kills: tuple[int, ...]

    def open(self):
        made = {"abc"[n]: one.make(100 * n) for n, one in enumerate(self.parts)}
        if self.mix is None:
            return Stream(made["a"], "train_data", limit=self.limit)
        source = open_train_data(made, self.mix, seed=5)
        source.follow(Progress(), None)
        return source

    def read(self, rank, size, kills=()):
        """Return what a rank reads: for each group its pass, and of each batch the part and ids."""
        seed_all(1)
        source = self.open()
        if size is not None:
            for part in source.parts():
                now = GeneratorStates.now(gpus=False)
                part.share_among(rank, size, now, is_training=False)
            join(source)
        seed_all(1 if size is None else 10 + rank)
        found, count = [], 0
        while count < GROUPS:
            for group in source.groups(self.accumulate):
                shares = source.shares() or [None] * len(group)
                found.append((list(map(ids, group)), shares))
                torch.rand(1), random.random(), np.random.rand()  # As a model does.
                count += 1
                if count in kills:  # Nothing but the checkpoint and the random numbers stays.
                    state, now = written(source.state_dict()), GeneratorStates.now()
                    seed_all(99)
                    source = self.open()
                    if size is not None and size > 1:
                        for part in source.parts():
                            part.share_among(rank, size, is_training=False)
                    source.load_state_dict(state)
                    join(source)
                    now.restore()
                    break
                if count == GROUPS:
                    break
            else:
                found.append("end of the pass")
        return found


def written(state):
    """Return a state as it is read from a checkpoint."""
    file = BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def join(source):
    """Let all parts draw from one sequence, as a run does."""
    orders = [part.order for part in source.parts() if part.order.shared is not None]
    for order in orders:
        order.shared = orders[0].shared


def ids(batch):
    return {n: ids(one) for n, one in batch.items()} if isinstance(batch, dict) else batch.tolist()


@st.composite
def cases(draw):
    mix = draw(st.sampled_from([None, None, "zip", "cycle", "in order", {"a": 2.0, "b": 1.0}]))
    parts = draw(st.lists(loaders(), min_size=2, max_size=2)) if mix else [draw(loaders())]
    kills = draw(st.lists(st.integers(1, GROUPS - 1), max_size=3, unique=True))
    return Case(
        tuple(parts),
        mix,
        draw(st.none() | st.integers(1, 4)) if mix is None else None,
        draw(st.integers(1, 3)),
        draw(st.none() | st.integers(1, 4)),
        tuple(kills),
    )


def together(of_ranks, at):
    """Join the parts that ranks have read of the batch that is found at some keys."""
    joined = []
    for read, shares in of_ranks:
        own, share = read, shares
        for key in at:
            own, share = own[key], share.streams[key]
        assert len(own) == max(share.own, 1)
        joined += own[: share.own]
        total = share.total
    assert len(joined) == total
    return joined


def as_whole(case, kills=()):
    """Return what all ranks have read: the global batches."""
    if case.ranks is None:
        return [one if isinstance(one, str) else one[0] for one in case.read(0, None, kills)]
    of_ranks = [case.read(rank, case.ranks, kills) for rank in range(case.ranks)]
    keys = [(name,) for name in "ab"] if case.mix in ("zip", "cycle") else [()]
    found = []
    for groups in zip(*of_ranks, strict=True):
        if isinstance(groups[0], str):
            found.append(groups[0])
            continue
        found.append([])
        for microbatch in zip(*(zip(*group, strict=True) for group in groups), strict=True):
            parts = [together(microbatch, at) for at in keys]
            found[-1].append(dict(zip("ab", parts, strict=True)) if len(keys) > 1 else parts[0])
    return found


@pytest.mark.slow
@given(cases())
@FEW
def test_kills_change_nothing_of_what_is_read(case):
    assert as_whole(case, case.kills) == as_whole(case)


@given(cases())
@FEW
def test_any_number_of_ranks_reads_what_one_reads(case):
    if case.ranks is not None:
        alone = Case(case.parts, case.mix, case.limit, case.accumulate, 1, ())
        assert as_whole(case) == as_whole(alone)


@given(cases())
@FEW
def test_each_sample_is_read_once_in_a_pass(case):
    if case.mix is not None:
        return
    (loader,) = case.parts
    batches = loader.samples // loader.size
    if not loader.drop_last:
        batches = -(-loader.samples // loader.size)
    expected = min(batches, case.limit or batches)
    seen = []
    for group in as_whole(case, case.kills):
        if isinstance(group, str):
            assert len(seen) == expected
            flat = [*chain.from_iterable(seen)]
            assert len(set(flat)) == len(flat) and set(flat) <= set(range(loader.samples))
            if not loader.drop_last and expected == batches:
                assert set(flat) == set(range(loader.samples))
            seen = []
        else:
            seen += group


# --- P2: the cuts of all ranks are the batch ------------------------------------------------------


class Pair(NamedTuple):
    x: object
    y: object


@dataclass
class Box:
    content: object
    label: str = "same for all"


def leaves(count):
    rows = st.sampled_from(
        [
            torch.arange(count * 2).reshape(count, 2),
            torch.arange(count),
            np.arange(count * 6).reshape(count, 2, 3),
            [f"sample {n}" for n in range(count)],
        ]
    )
    of_all = st.sampled_from([3, "a word", None, True, torch.tensor(2.5)])
    return rows | of_all


def nested(count):
    def hold(inside):
        return (
            st.dictionaries(st.sampled_from("uvw"), inside, min_size=1, max_size=3)
            | st.builds(Box, inside)
            | st.builds(Pair, inside, inside)
        )

    return st.recursive(leaves(count), hold, max_leaves=6)


@st.composite
def batches(draw):
    count = draw(st.integers(1, 9))
    return count, {"first": torch.arange(count), "more": draw(nested(count))}


@given(batches(), st.integers(1, 6))
@FEW
def test_the_cuts_of_all_ranks_joined_are_the_batch(batch, size):
    count, whole = batch
    cuts = [Cut(rank, size) for rank in range(size)]
    parts = [cut.batch(whole) for cut in cuts]
    shares = [cut.shares.popleft() for cut in cuts]
    assert sum(share.own for share in shares) == count
    counted = [part for part, share in zip(parts, shares, strict=True) if share.own]
    assert_joined(counted, whole)


def assert_joined(parts, whole):
    if isinstance(whole, torch.Tensor) and whole.ndim:
        assert torch.equal(torch.cat(parts), whole)
    elif isinstance(whole, np.ndarray):
        assert np.array_equal(np.concatenate(parts), whole)
    elif isinstance(whole, list):
        assert [*chain.from_iterable(parts)] == whole
    elif isinstance(whole, dict):
        assert all(part.keys() == whole.keys() for part in parts)
        for key in whole:
            assert_joined([part[key] for part in parts], whole[key])
    elif isinstance(whole, Box):
        for field in fields(Box):
            assert_joined([getattr(part, field.name) for part in parts], getattr(whole, field.name))
    elif isinstance(whole, Pair):
        assert all(isinstance(part, Pair) for part in parts)
        for mine, theirs in zip(zip(*parts, strict=True), whole, strict=True):
            assert_joined(list(mine), theirs)
    else:
        assert all(part is whole or part == whole for part in parts)
