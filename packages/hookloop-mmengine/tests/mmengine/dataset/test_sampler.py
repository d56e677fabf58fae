"""The orders in which MMEngine's samplers go through the data."""

from itertools import islice

import pytest

from hookloop_mmengine.dataset import DefaultSampler, InfiniteSampler, sampler


@pytest.fixture
def share(monkeypatch):
    """Let a sampler believe that it is one of several processes."""

    def share(kind, rank, world, *args, **kwargs):
        monkeypatch.setattr(sampler, "get_dist_info", lambda: (rank, world))
        return kind(*args, **kwargs)

    return share


def test_without_shuffling_the_order_is_that_of_the_data():
    assert list(DefaultSampler(range(4), shuffle=False)) == [0, 1, 2, 3]


def test_the_order_depends_on_seed_and_epoch_only():
    first, second = (DefaultSampler(range(20), seed=3) for _ in range(2))
    assert list(first) == list(first) == list(second)
    assert sorted(first) == list(range(20))
    before = list(first)
    first.set_epoch(1)
    assert list(first) != before
    first.set_epoch(0)
    assert list(first) == before
    # Seed and epoch are added, as in MMEngine.
    second.set_epoch(1)
    assert list(DefaultSampler(range(20), seed=4)) == list(second)


def test_without_a_seed_one_is_drawn():
    assert isinstance(DefaultSampler(range(2)).seed, int)
    assert isinstance(InfiniteSampler(range(2)).seed, int)


@pytest.mark.parametrize(
    ("length", "world", "round_up", "parts"),
    [
        (5, 2, True, [[0, 2, 4], [1, 3, 0]]),
        (5, 2, False, [[0, 2, 4], [1, 3]]),
        (4, 2, True, [[0, 2], [1, 3]]),
        (2, 5, True, [[0], [1], [0], [1], [0]]),
        (2, 3, False, [[0], [1], []]),
    ],
)
def test_processes_take_turns(share, length, world, round_up, parts):
    data = range(length)
    for rank, wanted in enumerate(parts):
        one = share(DefaultSampler, rank, world, data, shuffle=False, round_up=round_up)
        assert list(one) == wanted
        assert len(one) == len(wanted)


def test_processes_share_one_random_order(share):
    parts = [list(share(DefaultSampler, rank, 2, range(6), seed=1)) for rank in range(2)]
    whole = list(share(DefaultSampler, 0, 1, range(6), seed=1))
    assert [parts[index % 2][index // 2] for index in range(6)] == whole


def test_an_endless_sampler_repeats_the_data():
    assert list(islice(InfiniteSampler(range(3), shuffle=False), 7)) == [0, 1, 2, 0, 1, 2, 0]


def test_an_endless_sampler_shuffles_each_pass():
    drawn = list(islice(InfiniteSampler(range(10), seed=2), 30))
    passes = [drawn[start : start + 10] for start in (0, 10, 20)]
    assert all(sorted(one) == list(range(10)) for one in passes)
    assert len({tuple(one) for one in passes}) == 3
    assert drawn == list(islice(InfiniteSampler(range(10), seed=2), 30))


def test_processes_take_turns_in_an_endless_order(share):
    parts = [
        list(islice(share(InfiniteSampler, rank, 2, range(3), shuffle=False), 3)) for rank in (0, 1)
    ]
    assert parts == [[0, 2, 1], [1, 0, 2]]


def test_an_endless_sampler_has_the_length_of_the_data_and_one_epoch():
    endless = InfiniteSampler(range(5), seed=1)
    before = list(islice(endless, 5))
    endless.set_epoch(4)
    assert list(islice(endless, 5)) == before
    assert len(endless) == 5
