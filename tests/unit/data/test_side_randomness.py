import random

import numpy as np
import pytest
import torch

from hookloop.data.side_randomness import Place, SideRandomness


def place_of(*calls, name="after_train_iter", is_busy=True):
    each = [(f"call {n}", call) for n, call in enumerate(calls)]
    return Place(name, is_busy, lambda: [call() for call in calls], each)


def states():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def draw_all():
    return random.random(), np.random.randn(), torch.rand(1).item()


def lend(side, times, *calls, **options):
    for when in range(times):
        side.lend(place_of(*calls, **options), when)


def test_every_generator_is_put_back():
    before = states()
    lend(SideRandomness(), 5, draw_all)
    assert states() == before


def test_so_it_is_after_an_error():
    before = states()

    def fail():
        draw_all()
        raise ValueError("broken")

    side = SideRandomness()
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            side.lend(place_of(fail), 0)
        assert states() == before
    drawn = []
    lend(side, 2, lambda: drawn.append(draw_all()))
    assert states() == before


def test_the_numbers_differ_from_time_to_time_and_from_one_to_the_other():
    side, one, other = SideRandomness(), [], []
    lend(side, 4, lambda: one.append(draw_all()), lambda: other.append(draw_all()))
    numbers = [n for drawn in (*one, *other) for n in drawn]
    assert len(set(numbers)) == 24


def test_they_follow_from_the_key_alone():
    found = []
    for torch_seed in (1, 2):
        torch.manual_seed(torch_seed)
        side = SideRandomness()
        side.key = 5
        lend(side, 4, lambda: found.append(draw_all()))
    assert found[:4] == found[4:]


def test_somebody_else_who_draws_changes_nothing():
    found = []
    for others in ([], [draw_all]):
        side, numbers = SideRandomness(), []
        side.key = 1
        lend(side, 3, *others, lambda numbers=numbers: numbers.append(torch.rand(1).item()))
        found.append(numbers)
    assert len(set(found[0])) == 3
    # Their names tell them apart; here a name is a number.
    assert set(found[0]).isdisjoint(found[1])


def test_who_begins_to_draw_late_has_own_numbers_soon():
    side, numbers = SideRandomness(), []

    def draw_late():
        if len(side.seen) >= 3:
            numbers.append(torch.rand(1).item())
        side.seen.append(1)

    side.seen = []
    torch.manual_seed(4)
    upcoming = torch.rand(1).item()
    torch.manual_seed(4)
    lend(side, 8, draw_late)
    assert numbers[0] == upcoming  # A copy of what is next in the training, and put back.
    assert len(set(numbers)) == 5
    assert torch.rand(1).item() == upcoming
    assert side.state_dict()["drawn"] == {"after_train_iter: call 0": ["torch"]}


def test_a_resumed_one_continues_the_same():
    def numbers_of(side, begin, end):
        numbers = []
        for when in range(begin, end):
            late = when >= 3  # The first draw is after the cut.
            place = place_of(lambda late=late: numbers.append(torch.rand(1).item() if late else 0))
            torch.manual_seed(when)
            side.lend(place, when)
        return numbers

    whole = numbers_of(SideRandomness(), 0, 6)
    torch.manual_seed(0)
    first = SideRandomness()
    begun = numbers_of(first, 0, 2)
    second = SideRandomness()
    second.load_state_dict(first.state_dict())
    assert begun + numbers_of(second, 2, 6) == whole


def test_what_acts_inside_belongs_to_who_called_it():
    side, before = SideRandomness(), states()
    inner = place_of(draw_all, name="after_sample")
    side.lend(place_of(lambda: side.lend(inner, 0)), 0)
    assert states() == before


def test_nobody_who_draws_nothing_is_seeded_again():
    class Counting(SideRandomness):
        seeds = 0

        def _call_each(self, *args):
            self.seeds += 1
            super()._call_each(*args)

    side = Counting()
    lend(side, 9, lambda: None)
    assert side.seeds == 1
    lend(side, 9, lambda: None, is_busy=False, name="after_epoch")
    assert side.seeds == 10


def test_the_generator_of_a_loader_is_put_back():
    side, generator = SideRandomness(), torch.Generator().manual_seed(1)
    side.watch_loaders([generator, generator, torch.default_generator])
    before = generator.get_state()
    lend(side, 3, lambda: torch.rand(1, generator=generator))
    assert torch.equal(generator.get_state(), before)


def test_two_places_of_one_name_know_nothing_of_each_other():
    found = []
    for with_other in (False, True):
        side, numbers = SideRandomness(), []
        side.key = 1
        other = Place("after_train_iter", True, lambda: None, [("other", lambda: None)])

        def note(numbers=numbers):
            numbers.append(torch.rand(1).item())

        mine = Place("after_train_iter", True, note, [("mine", note)])
        for when in range(3):
            if with_other:  # It draws nothing, and acts first: by a schedule of its own.
                side.lend(other, when)
            side.lend(mine, when)
        found.append(numbers)
    assert found[0] == found[1]
