import random

import pytest
import torch

from hookloop.data.indices import PassStart, SkippingIndices
from hookloop.data.samplers import SamplerStates


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
