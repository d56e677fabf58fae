import pytest
import torch
from torch import nn

from hookloop.errors import HookError
from hookloop.hooks import MixUp

SWAP = torch.tensor([1, 0])


def test_targets_that_are_not_classes_are_mixed_as_they_are():
    inputs, targets = torch.tensor([[0.0], [4.0]]), torch.tensor([[2.0], [6.0]])
    mixed = MixUp().mix(inputs, targets, 0.75, SWAP)
    assert torch.equal(mixed[0], torch.tensor([[1.0], [3.0]]))
    assert torch.equal(mixed[1], torch.tensor([[3.0], [5.0]]))


def test_masks_of_classes_become_what_cross_entropy_takes():
    masks = torch.tensor([[[0, 1]], [[1, 2]]])
    _, targets = MixUp(3).mix(torch.zeros(2, 1, 1, 2), masks, 0.75, SWAP)
    assert targets.shape == (2, 3, 1, 2)
    assert torch.equal(targets[0, :, 0, 0], torch.tensor([0.75, 0.25, 0.0]))
    assert nn.functional.cross_entropy(torch.zeros(2, 3, 1, 2), targets) > 0


def test_the_loss_is_the_mean_of_the_two_losses():
    torch.manual_seed(0)
    output, classes = torch.randn(2, 3), torch.tensor([0, 2])
    _, targets = MixUp(3).mix(torch.zeros(2, 1), classes, 0.3, SWAP)
    loss = nn.functional.cross_entropy
    expected = 0.3 * loss(output, classes) + 0.7 * loss(output, classes[SWAP])
    assert torch.allclose(loss(output, targets), expected)


def test_inputs_that_cannot_be_mixed_are_rejected():
    with pytest.raises(HookError, match=r"uint8\[2, 1\]"):
        MixUp(3).mix(torch.zeros(2, 1, dtype=torch.uint8), torch.tensor([0, 1]), 0.5, SWAP)
