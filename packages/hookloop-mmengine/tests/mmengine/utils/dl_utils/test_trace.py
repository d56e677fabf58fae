"""Whether torch traces a model."""

import pytest
import torch

from hookloop_mmengine.utils.dl_utils import is_jit_tracing


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_it_is_true_while_a_model_is_traced():
    seen = []

    def forward(x):
        seen.append(is_jit_tracing())
        return x

    forward(1)
    torch.jit.trace(forward, torch.ones(1), check_trace=False)
    assert seen == [False, True]
