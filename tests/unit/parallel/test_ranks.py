import pytest
import torch
from tests.ranks import each_rank, on_ranks

from hookloop.errors import HookloopError
from hookloop.parallel.ranks import Ranks
from hookloop.parallel.world import World


def connected():
    ranks = Ranks(World.from_environment())
    ranks.open(torch.device("cpu"))
    return ranks


def test_a_process_alone_needs_nobody():
    ranks = Ranks(World())
    ranks.open(torch.device("cpu"))
    assert not ranks.is_open
    assert ranks.gather({"a": 1}) == [{"a": 1}]
    assert ranks.largest([1, 2]) == [1, 2] and ranks.sums([0.5]) == [0.5]
    assert ranks.reduce(4, "max") == 4


def test_an_unknown_reduction_is_rejected():
    with pytest.raises(HookloopError, match="'median' must be one of 'sum'"):
        Ranks(World()).reduce(1.0, "median")


def test_a_connection_that_is_not_open_is_rejected():
    with pytest.raises(HookloopError, match="is not open yet"):
        Ranks(World(0, 2)).gather(1)


@pytest.mark.slow
def test_ranks_tell_each_other_values():
    def talk():
        ranks = connected()
        rank = ranks.world.rank
        same = torch.full((2,), float(rank))
        ranks.copy_from_first([same])
        return {
            "gather": ranks.gather({"rank": rank}),
            "share": ranks.share(f"of {rank}"),
            "largest": ranks.largest([rank, -rank]),
            "sums": ranks.sums([0.1, float(rank)]),
            "numbers": [ranks.reduce(rank, how) for how in ("sum", "mean", "max", "min")],
            "tensor": ranks.reduce(torch.tensor([rank, 1]), "mean").tolist(),
            "whole": ranks.reduce(torch.tensor([rank, 1]), "sum").tolist(),
            "same": same.tolist(),
        }

    expected = {
        "gather": [{"rank": 0}, {"rank": 1}, {"rank": 2}],
        "share": "of 0",
        "largest": [2, 0],
        "sums": [pytest.approx(0.3), 3.0],
        "numbers": [3, 1.0, 2, 0],
        "tensor": [1.0, 1.0],
        "whole": [3, 3],
        "same": [0.0, 0.0],
    }
    assert on_ranks(talk, 3) == [expected] * 3


@pytest.mark.slow
def test_the_first_failure_is_known_to_all_ranks_at_once():
    def fail():
        ranks = connected()
        if ranks.world.rank == 1:
            error = ValueError("bad sample 17")
            ranks.break_off(error, 7)
            raise error
        try:
            ranks.gather(1)
        except RuntimeError as error:
            word = str(ranks.failure_of_another(error, 7))
            ranks.wait_for_readers()
            return word

    ends = each_rank(fail, 3)
    words = [ends[0].value, ends[2].value]
    assert all(word.startswith("rank 1 failed in iteration 7: ValueError: bad") for word in words)
    assert ends[1].code == 1
