import random

import numpy as np
import pytest
import torch

from hookloop.data.random.observers import ObserverCalls, ObserverRandomness


def observers_of(*calls, name="after_train_iter", is_busy=True):
    each = [(f"call {n}", call) for n, call in enumerate(calls)]
    return ObserverCalls(name, is_busy, lambda: [call() for call in calls], each)


def states():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def draw_all():
    return random.random(), np.random.randn(), torch.rand(1).item()


def call(own, times, *calls, **options):
    for when in range(times):
        own.call_observers(observers_of(*calls, **options), when)


def test_every_generator_is_put_back():
    before = states()
    call(ObserverRandomness(), 5, draw_all)
    assert states() == before


def test_they_are_put_back_after_an_error():
    before = states()

    def fail():
        draw_all()
        raise ValueError("broken")

    own = ObserverRandomness()
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            own.call_observers(observers_of(fail), 0)
        assert states() == before
    drawn = []
    call(own, 2, lambda: drawn.append(draw_all()))
    assert states() == before


def test_the_numbers_differ_between_moments_and_between_observers():
    own, one, other = ObserverRandomness(), [], []
    call(own, 4, lambda: one.append(draw_all()), lambda: other.append(draw_all()))
    numbers = [n for drawn in (*one, *other) for n in drawn]
    assert len(set(numbers)) == 24


def test_the_numbers_depend_only_on_the_key():
    found = []
    for torch_seed in (1, 2):
        torch.manual_seed(torch_seed)
        own = ObserverRandomness()
        own.key = 5
        call(own, 4, lambda: found.append(draw_all()))
    assert found[:4] == found[4:]


def test_another_observer_that_draws_changes_nothing():
    found = []
    for others in ([], [draw_all]):
        own, numbers = ObserverRandomness(), []
        own.key = 1
        call(own, 3, *others, lambda numbers=numbers: numbers.append(torch.rand(1).item()))
        found.append(numbers)
    assert len(set(found[0])) == 3
    # Their names tell them apart; here a name is a number.
    assert set(found[0]).isdisjoint(found[1])


def test_an_observer_that_starts_to_draw_late_soon_has_its_own_numbers():
    own, numbers = ObserverRandomness(), []

    def draw_late():
        if len(own.seen) >= 3:
            numbers.append(torch.rand(1).item())
        own.seen.append(1)

    own.seen = []
    torch.manual_seed(4)
    upcoming = torch.rand(1).item()
    torch.manual_seed(4)
    call(own, 8, draw_late)
    assert numbers[0] == upcoming  # A copy of what the training draws next, and put back.
    assert len(set(numbers)) == 5
    assert torch.rand(1).item() == upcoming
    assert own.state_dict()["drawn"] == {"after_train_iter: call 0": ["torch"]}


def test_a_resumed_one_continues_the_same():
    def numbers_of(own, begin, end):
        numbers = []
        for when in range(begin, end):
            late = when >= 3  # The first draw is after the cut.
            observers = observers_of(
                lambda late=late: numbers.append(torch.rand(1).item() if late else 0)
            )
            torch.manual_seed(when)
            own.call_observers(observers, when)
        return numbers

    whole = numbers_of(ObserverRandomness(), 0, 6)
    torch.manual_seed(0)
    first = ObserverRandomness()
    begun = numbers_of(first, 0, 2)
    second = ObserverRandomness()
    second.load_state_dict(first.state_dict())
    assert begun + numbers_of(second, 2, 6) == whole


def test_observers_called_by_an_observer_draw_as_part_of_it():
    own, before = ObserverRandomness(), states()
    inner = observers_of(draw_all, name="after_sample")
    own.call_observers(observers_of(lambda: own.call_observers(inner, 0)), 0)
    assert states() == before


def test_observers_that_draw_nothing_are_not_seeded_again():
    class Counting(ObserverRandomness):
        seeds = 0

        def _call_each(self, *args):
            self.seeds += 1
            super()._call_each(*args)

    own = Counting()
    call(own, 9, lambda: None)
    assert own.seeds == 1
    call(own, 9, lambda: None, is_busy=False, name="after_epoch")
    assert own.seeds == 10


def test_the_generator_of_a_loader_is_put_back():
    own, generator = ObserverRandomness(), torch.Generator().manual_seed(1)
    own.watch_loaders([generator, generator, torch.default_generator])
    before = generator.get_state()
    call(own, 3, lambda: torch.rand(1, generator=generator))
    assert torch.equal(generator.get_state(), before)


def test_two_groups_of_observers_at_one_point_are_independent():
    found = []
    for with_other in (False, True):
        own, numbers = ObserverRandomness(), []
        own.key = 1
        other = ObserverCalls("after_train_iter", True, lambda: None, [("other", lambda: None)])

        def note(numbers=numbers):
            numbers.append(torch.rand(1).item())

        mine = ObserverCalls("after_train_iter", True, note, [("mine", note)])
        for when in range(3):
            if with_other:  # It draws nothing and is called first, because of its interval.
                own.call_observers(other, when)
            own.call_observers(mine, when)
        found.append(numbers)
    assert found[0] == found[1]
