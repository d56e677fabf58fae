"""Results of all processes, each once and in the order of the data."""

import pytest
from tests.ranks import on_ranks

from hookloop_mmengine import dist
from hookloop_mmengine.dist.results import Parts, samples


@pytest.mark.parametrize(("size", "wanted"), [(2, [1, 2]), (3, [1, 2, 3]), (9, [1, 2, 3])])
def test_results_beyond_the_size_of_the_data_are_dropped(size, wanted):
    assert dist.collect_results([1, 2, 3], size) == wanted


def test_parts_belong_to_the_results_that_were_noted():
    parts = Parts()
    assert parts.cut([]) == [] and parts.cut("a") is None
    parts.note(4, 1)
    parts.add(5, 2)
    parts.add(5, 2)
    assert parts.cut("abc") == [(4, ["a"]), (5, ["b", "c"])]
    assert parts.cut("abcd") is None
    parts.clear()
    assert parts.cut([]) == []


# Batches of 5, 2 and 4 samples, as three processes read them: of the second, one has none.
CUTS = [[(1, [0, 1]), (2, [5]), (3, [7, 8])], [(1, [2, 3]), (2, [6]), (3, [9])],
        [(1, [4]), (3, [10])]]  # fmt: skip


def _collect():
    dist.init_dist("pytorch")
    mine, parts = [], Parts()
    for batch, numbers in CUTS[dist.get_rank()]:
        mine += numbers
        parts.note(batch, len(mine))
        samples.add(batch, len(numbers))
    doubled = [number for number in mine for _ in range(2)]
    dealt = list(range(dist.get_rank(), 11, 3))
    return [
        dist.collect_results(mine, 11, parts=parts),
        dist.collect_results(mine, 11),
        # Two results for each sample: only the first process could have noted so many.
        dist.collect_results(doubled if dist.get_rank() else mine, 100) and "collected",
        # Every third sample: there are as many as were noted in some processes only.
        dist.collect_results(dealt, 11),
        dist.collect_results([], 0),
    ]


@pytest.mark.slow
def test_three_processes_collect_in_the_order_of_the_data():
    first, *others = on_ranks(_collect, 3)
    assert first[0] == first[1] == first[3] == list(range(11))
    assert first[2] == "collected" and first[4] == []
    assert others == [[None] * 5] * 2
