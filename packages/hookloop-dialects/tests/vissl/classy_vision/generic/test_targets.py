"""Targets in the form of one number per class."""

import pytest
import torch

from hookloop_dialects.vissl.classy_vision.generic import targets


def test_classes_become_rows_and_rows_stay():
    scores = torch.zeros(2, 3)
    rows = torch.tensor([[0, 0, 1], [1, 0, 0]])
    for given in (torch.tensor([2, 0]), torch.tensor([[2], [0]]), rows):
        assert torch.equal(targets.maybe_convert_to_one_hot(given, scores), rows)


def test_targets_that_do_not_fit_are_rejected():
    with pytest.raises(AssertionError, match="a target is 3, but there are 3 classes"):
        targets.maybe_convert_to_one_hot(torch.tensor([3]), torch.zeros(1, 3))
    with pytest.raises(AssertionError, match="the targets have the shape"):
        targets.maybe_convert_to_one_hot(torch.zeros(1, 2), torch.zeros(1, 3))


def test_kinds_of_numbers_are_told_apart():
    assert targets.is_pos_int(1) and not targets.is_pos_int(True) and not targets.is_pos_int(0)
