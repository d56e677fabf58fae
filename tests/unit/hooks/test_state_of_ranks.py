"""States that differ from rank to rank: each gets its own back, on any number of ranks."""

from types import SimpleNamespace

import pytest

from hookloop.hooks import AccumulateVariables
from hookloop.hooks._state_of_ranks import StateOfRanks
from hookloop.parallel.world import World


class Own(StateOfRanks):
    """Has one entry that is a rank's own."""

    def __init__(self, number=0):
        self.number = number

    def state_dict(self):
        return {"shared": 7, "number": self.number}

    def own_state(self):
        return {"number": self.number}

    def divide_state(self, states, rank, size):
        return {"number": sum(state["number"] for state in states[rank::size])}


def run_of(rank, size, gathered=(), *, is_broken=False):
    return SimpleNamespace(
        world=World(rank, size),
        _internals=SimpleNamespace(ranks=SimpleNamespace(is_broken=is_broken)),
        gather=lambda value: list(gathered),
    )


def saved(size=3):
    hook = Own()
    checkpoint = {"hooks": {"own": hook.state_dict()}}
    states = [{"number": 10 + rank} for rank in range(size)]
    hook.before_save_checkpoint(run_of(0, size, states), checkpoint)
    return checkpoint


@pytest.mark.parametrize(
    ("rank", "size", "number"), [(2, 3, 12), (0, 2, 22), (1, 2, 11), (0, 1, 33)]
)
def test_a_rank_gets_its_own_state_or_its_part_of_all(rank, size, number):
    checkpoint = saved()
    Own().after_load_checkpoint(run_of(rank, size), checkpoint)
    assert checkpoint["hooks"]["own"] == {"shared": 7, "number": number}


def test_a_single_process_and_a_rank_that_failed_keep_the_plain_state():
    for run in (run_of(0, 1), run_of(0, 3, is_broken=True)):
        checkpoint = {"hooks": {"own": Own(4).state_dict()}}
        Own().before_save_checkpoint(run, checkpoint)
        assert checkpoint == {"hooks": {"own": {"shared": 7, "number": 4}}}


def test_the_state_of_a_single_process_is_divided_among_ranks():
    for rank, number in ((0, 4), (1, 0)):
        checkpoint = {"hooks": {"own": Own(4).state_dict()}}
        Own().after_load_checkpoint(run_of(rank, 2), checkpoint)
        assert checkpoint["hooks"]["own"]["number"] == number


def test_a_hook_that_the_checkpoint_does_not_know_is_left_alone():
    for checkpoint in ({}, {"hooks": {}}, {"hooks": {"own": None}}):
        before = dict(checkpoint)
        Own().after_load_checkpoint(run_of(1, 2), checkpoint)
        assert checkpoint == before


def test_variables_of_one_process_continue_on_two_ranks_before_those_that_follow():
    hook = AccumulateVariables(["x"])
    states = [hook.divide_state([{"train": {"x": [["a"], ["b"]]}}], rank, 2) for rank in range(2)]
    assert states[0]["train"] == {"x": [["a"], ["b"]]}
    assert states[0]["places"] == {"x": [[0, 0, 0, 1], [0, 1, 0, 1]]}
    assert states[1] == {"train": {}}
