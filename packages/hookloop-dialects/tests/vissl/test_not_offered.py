"""What is rejected by name."""

import pytest
import torch

from hookloop.errors import HookError, ModelError
from hookloop_dialects.vissl import not_offered


def test_each_says_what_to_use():
    model = torch.nn.Linear(1, 1)
    assert not isinstance(model, not_offered.FullyShardedDataParallel)
    for use in (not_offered.fsdp_wrapper, not_offered.fsdp_auto_wrap_bn,
                not_offered.FullyShardedDataParallel):  # fmt: skip
        with pytest.raises(ModelError, match="parallel='sharded'"):
            use(model)
    with pytest.raises(HookError, match="ProfileOperators"):
        not_offered.LayerwiseMemoryTracker()
    not_offered.fsdp_recursive_reset_lazy_init(model)
