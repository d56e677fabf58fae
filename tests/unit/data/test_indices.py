import random

import pytest
import torch

from hookloop.data.position.indices import PassStart, SkippingIndices
from hookloop.data.ranks.cut import Cut
from hookloop.data.ranks.place import Share
from hookloop.data.reading.samplers import SamplerStates


def make(sampler, **options):
    options = {"is_batched": True, "seeds": False} | options
    return SkippingIndices(sampler, SamplerStates([sampler]), **options)


class Batches:
    """A sampler that records how often it was advanced."""

    def __init__(self, count=5):
        self.count = count
        self.advanced = 0

    def __iter__(self):
        for index in range(self.count):
            self.advanced += 1
            yield [index, index + 10]

    def __len__(self):
        return self.count


class Drawing:
    """A sampler that draws each index when it is wanted."""

    def __iter__(self):
        for _ in range(6):
            yield [random.randrange(100), int(torch.randint(100, ()))]


@pytest.mark.parametrize("skip", [0, 1, 4, 5, 9])
def test_a_pass_starts_anywhere(skip):
    indices = make(Batches())
    indices.prepare(PassStart(skip), {}, rewinds=False)
    assert list(indices) == [[n, n + 10] for n in range(5)][skip:]
    assert len(indices) == 5


def test_the_sampler_is_not_advanced_before_the_first_index_is_wanted():
    sampler = Batches()
    indices = make(sampler)
    indices.prepare(PassStart(2), {}, rewinds=False)
    batches = iter(indices)
    assert sampler.advanced == 0
    indices.prime()
    assert sampler.advanced == 2
    assert next(batches) == [2, 12]


@pytest.mark.parametrize(("is_batched", "expected"), [(True, [1, 11]), (False, [[1, 11]])])
def test_with_seeds_each_batch_has_its_key_and_number(is_batched, expected):
    indices = make(Batches(3), is_batched=is_batched, seeds=True)
    indices.prepare(PassStart(1, key=77), {}, rewinds=False)
    groups = list(indices)
    assert groups[0] == (expected, 77, 1)
    assert [number for _, _, number in groups] == [1, 2]


def test_the_generators_are_rewound_before_the_order_is_drawn():
    calls = []
    sampler = Batches()
    indices = make(sampler)
    start = PassStart(rewind=lambda: calls.append(sampler.advanced))
    indices.prepare(start, {}, rewinds=True)
    batches = iter(indices)
    assert calls == []
    next(batches)
    next(batches)
    assert calls == [0]


def test_without_a_stream_or_workers_the_position_is_the_whole_state():
    indices = make(Batches())
    next(iter(indices))
    assert indices.state(1) == {}


def test_batches_that_workers_have_in_advance_are_in_the_state():
    indices = make(Batches(), ahead=3)
    batches = iter(indices)
    for _ in range(4):
        next(batches)
    state = indices.state(2)
    assert (state["drawn"], state["ahead"], state["last"]) == (4, [[2, 12], [3, 13]], [3, 13])
    assert not state["ended"]
    assert list(batches) == [[4, 14]]
    assert indices.state(5)["ended"]


@pytest.mark.parametrize("position", [1, 2, 5, 6])
def test_a_sampler_with_its_own_stream_continues_whatever_the_model_draws(position):
    def run(indices, count, drawn):
        batches, found = iter(indices), []
        for batch in batches:
            found.append(batch)
            for _ in range(drawn):  # The model draws, too.
                random.random()
                torch.rand(1)
            if len(found) == count:
                break
        return found

    def seeded(seed=3):
        random.seed(seed)
        torch.manual_seed(seed)

    seeded()
    whole = make(Drawing(), has_own_stream=True)
    whole.prepare(PassStart(key=9), {}, rewinds=False)
    expected = run(whole, 6, drawn=1)

    seeded()
    first = make(Drawing(), has_own_stream=True)
    first.prepare(PassStart(key=9), {}, rewinds=False)
    run(first, position, drawn=5)
    state = {**first.state(position), "samplers": SamplerStates([Drawing()]).now()}

    seeded()
    second = make(Drawing(), has_own_stream=True)
    second.prepare(PassStart(position, key=9), state, rewinds=False)
    assert run(second, 6, drawn=2) == expected[position:]


def test_a_sampler_that_does_not_repeat_itself_is_reported(caplog):
    class Counting:
        count = 0

        def __iter__(self):
            for _ in range(4):
                Counting.count += 1
                yield [Counting.count]

    first = make(Counting(), has_own_stream=True)
    batches = iter(first)
    next(batches), next(batches)
    state = {**first.state(2), "samplers": [{}]}
    second = make(Counting(), has_own_stream=True)
    second.prepare(PassStart(2), state, rewinds=False)
    next(iter(second))
    assert "The sampler does not repeat itself" in caplog.text


@pytest.mark.parametrize("seeds", [False, True])
def test_a_rank_gets_its_part_of_each_batch_with_its_place(seeds):
    indices = make(Batches(3), seeds=seeds)
    indices.cut = Cut(1, 3)
    indices.prepare(PassStart(1, key=77), {}, rewinds=False)
    found = list(indices)
    assert found == ([([11], 77, 1, 1), ([12], 77, 2, 1)] if seeds else [[11], [12]])
    indices.cut = Cut(2, 3)  # The third of two has none, and takes the first.
    assert list(indices) == ([([1], 77, 1, 0), ([2], 77, 2, 0)] if seeds else [[1], [2]])
    assert list(indices.cut.shares) == [Share(0, 2), Share(0, 2)]


@pytest.mark.parametrize("position", [1, 2, 4])
def test_batches_in_advance_are_cut_for_another_number_of_ranks(position):
    first = make(Batches(), ahead=3)
    first.cut = Cut(0, 2)
    batches = iter(first)
    for _ in range(min(position + 3, 5)):
        next(batches)
    state = {**first.state(position), "samplers": [{}]}
    second = make(Batches(), ahead=3)
    second.prepare(PassStart(position), state, rewinds=False)
    second.cut = Cut(0, 1)
    assert list(second) == [[n, n + 10] for n in range(5)][position:]
    assert len(second.cut.shares) == 5 - position


def test_the_order_can_be_drawn_before_the_first_index_is_wanted():
    sampler = Batches()
    indices = make(sampler, ahead=2)
    indices.primes = True
    batches = iter(indices)
    indices.prime()
    assert sampler.advanced == 1
    assert next(batches) == [0, 10]
    assert indices.state(1)["drawn"] == 1
    assert len(list(batches)) == 4
