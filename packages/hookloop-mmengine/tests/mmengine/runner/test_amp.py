"""Mixed precision for a block of code."""

import pytest
import torch

from hookloop_mmengine.runner import autocast


@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ({"dtype": torch.bfloat16}, torch.bfloat16),
        ({"dtype": torch.float16}, torch.float16),
        ({"dtype": torch.bfloat16, "enabled": False}, torch.float32),
    ],
)
def test_a_block_computes_in_a_type(options, dtype):
    layer = torch.nn.Linear(1, 1)
    with autocast(device_type="cpu", **options):
        assert layer(torch.ones(1)).dtype == dtype
    assert layer(torch.ones(1)).dtype == torch.float32


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_the_device_is_chosen():
    with autocast(dtype=torch.bfloat16):
        assert torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu")
