"""What ranks have collected, joined in the order of the data."""

import torch

from hookloop.hooks.metrics._parts_of_ranks import Position, join_ranks


def test_parts_are_in_the_order_of_batches_and_then_of_ranks():
    first = {"val": {"id": [(Position(5, 1, 0, 2), [0, 1]), (Position(5, 2, 0, 1), [4])]}}
    second = {"val": {"id": [(Position(5, 1, 1, 2), [2, 3])]}}  # It has nothing of batch 2.
    third = {}
    assert join_ranks([second, third, first]) == {"val": {"id": [[0, 1], [2, 3], [4]]}}


def test_an_earlier_iteration_comes_first_although_its_batch_has_a_higher_number():
    parts = [(Position(9, 1, 0, 1), ["new pass"]), (Position(8, 7, 0, 1), ["old pass"])]
    assert join_ranks([{"train": {"x": parts}}]) == {"train": {"x": [["old pass"], ["new pass"]]}}


def test_a_number_of_the_batch_is_the_mean_of_its_parts_by_samples():
    ranks = [
        {"val": {"loss": [(Position(1, 1, rank, samples), torch.tensor(value))]}}
        for rank, (samples, value) in enumerate([(3, 1.0), (1, 5.0)])
    ]
    assert join_ranks(ranks) == {"val": {"loss": [torch.tensor(2.0)]}}


def test_numbers_of_several_updates_and_whole_numbers_stay_single():
    twice = [(Position(1, 1, 0, 2), torch.tensor(1.0)), (Position(1, 1, 0, 2), torch.tensor(3.0))]
    whole = [(Position(1, 1, rank, 2), torch.tensor(rank)) for rank in range(2)]
    assert join_ranks([{"train": {"loss": twice, "count": whole}}]) == {
        "train": {"loss": [1.0, 3.0], "count": [0, 1]}
    }
