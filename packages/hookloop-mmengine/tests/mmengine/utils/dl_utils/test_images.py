"""Images of a batch."""

import pytest
import torch

from hookloop_mmengine.utils.dl_utils import tensor2imgs


def test_the_channels_are_last_and_reversed():
    batch = torch.arange(3.0).view(1, 3, 1, 1).expand(2, 3, 4, 5)
    images = tensor2imgs(batch, mean=(10, 20, 30), std=(1, 2, 3))
    assert len(images) == 2
    assert images[0].shape == (4, 5, 3)
    assert images[0][0, 0].tolist() == [36, 22, 10]
    assert tensor2imgs(batch, to_bgr=False)[0][0, 0].tolist() == [0, 1, 2]
    assert tensor2imgs(batch[:, :1], to_bgr=False)[0].shape == (4, 5, 1)


@pytest.mark.parametrize(
    ("shape", "options"),
    [((3, 4, 4), {}), ((1, 2, 4, 4), {}), ((1, 1, 4, 4), {}), ((1, 3, 4, 4), {"mean": (1,)})],
)
def test_what_is_not_such_a_batch_is_rejected(shape, options):
    with pytest.raises(AssertionError):
        tensor2imgs(torch.ones(shape), **options)
