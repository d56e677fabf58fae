"""The labels of a sample."""

import pytest
import torch

from hookloop_mmengine.structures import LabelData


def test_labels_become_a_vector_and_back():
    onehot = LabelData.label_to_onehot(torch.tensor([2, 0]), 4)
    assert onehot.tolist() == [1, 0, 1, 0]
    assert LabelData.onehot_to_label(onehot).tolist() == [0, 2]
    assert LabelData.label_to_onehot(torch.tensor([], dtype=torch.long), 2).tolist() == [0, 0]


@pytest.mark.parametrize("wrong", [torch.tensor([2]), torch.tensor([-1]), torch.eye(2)])
def test_what_is_not_such_a_vector_is_rejected(wrong):
    with pytest.raises(ValueError, match="not one-hot"):
        LabelData.onehot_to_label(wrong)


def test_labels_fit_the_classes():
    with pytest.raises(AssertionError, match="A label is 4, of 4 classes"):
        LabelData.label_to_onehot(torch.tensor([4]), 4)
    with pytest.raises(AssertionError, match="should be a tensor"):
        LabelData.label_to_onehot([1], 4)
    with pytest.raises(AssertionError, match="should be a tensor"):
        LabelData.onehot_to_label([1])
