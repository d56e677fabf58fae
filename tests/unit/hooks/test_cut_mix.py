import pytest
import torch

from hookloop.errors import HookError
from hookloop.hooks import CutMix

SWAP = torch.tensor([1, 0])


def images(*shape, dtype=torch.float32):
    return torch.stack([torch.zeros(shape), torch.ones(shape)]).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_targets_have_the_share_of_what_was_pasted(share, dtype):
    hook = CutMix(2)
    for _ in range(20):
        inputs, targets = hook.mix(images(3, 8, 8, dtype=dtype), torch.tensor([0, 1]), share, SWAP)
        pasted = inputs[0].float().mean()
        assert inputs.dtype == dtype
        assert torch.allclose(
            targets, torch.stack([1 - pasted, pasted, pasted, 1 - pasted]).view(2, 2)
        )
        assert torch.equal(inputs[0, 0], inputs[0, 2])


def test_a_box_inside_has_the_share_that_was_drawn():
    hook = CutMix(2)
    shares = [
        1 - hook.mix(images(1, 100, 100), torch.tensor([0, 1]), 0.75, SWAP)[0][0].mean().item()
        for _ in range(50)
    ]
    assert min(shares) == pytest.approx(0.75)  # Boxes at a border are smaller.


def test_masks_are_pasted_like_the_images():
    inputs = images(1, 8, 8)
    mixed, masks = CutMix().mix(inputs, inputs[:, 0].long() * 5, 0.5, SWAP)
    assert torch.equal(masks, mixed[:, 0].long() * 5)


def test_sequences_are_cut_along_one_dimension():
    inputs, _ = CutMix(2, dims=1).mix(images(3, 20), torch.tensor([0, 1]), 0.5, SWAP)
    assert torch.equal(inputs[0, 0], inputs[0, 2])
    assert 0 < inputs[0].mean() < 1


def test_inputs_without_room_for_a_box_are_rejected():
    with pytest.raises(HookError, match=r"float32\[2, 8\].*dims=.*1"):
        CutMix(2).mix(images(8), torch.tensor([0, 1]), 0.5, SWAP)


def test_impossible_dimensions_are_rejected():
    with pytest.raises(HookError, match="dims=0"):
        CutMix(2, dims=0)
