"""The size and cost of a model."""

import pytest
import torch

from hookloop import dialects
from hookloop_dialects.vissl.classy_vision.generic import profiler


def test_sizes_of_a_model_as_hook_files_import_them():
    with dialects.alias("vissl"):
        from classy_vision.generic.distributed_util import all_reduce_max
        from classy_vision.generic.profiler import (
            compute_activations,
            compute_flops,
            count_params,
        )
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1), torch.nn.Flatten(), torch.nn.Linear(8, 5))
    assert count_params(model) == 3 * 2 + 2 + 8 * 5 + 5
    assert compute_flops(model, (3, 2, 2)) == 3 * 2 * 4 + (8 * 5 + 5)
    assert compute_activations(model, (3, 2, 2)) == 2 * 4 + 5
    assert model.training
    assert all_reduce_max(torch.tensor(2.0)) == 2


def test_frozen_parameters_count():
    model = torch.nn.Linear(2, 3)
    model.bias.requires_grad_(False)
    assert profiler.count_params(model) == 9


def test_looking_at_a_model_does_not_change_it():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    profiler.compute_flops(model, (4,))
    assert torch.equal(torch.get_rng_state(), random)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert model.training


@pytest.mark.parametrize("training", [True, False])
def test_a_failure_leaves_the_model_as_it_was(training):
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1)).train(training)
    with pytest.raises(RuntimeError):
        profiler.compute_activations(model, (5, 2, 2))
    assert model.training is training
    assert not model[0]._forward_hooks


def test_a_forward_pass_is_profiled_and_shown():
    model = torch.nn.Linear(4, 2).train()
    found = profiler.profile(model, batchsize_per_replica=3, input_shape=(4,))
    assert "aten::linear" in profiler.summarize_profiler_info(found)
    assert model.training
    with pytest.raises(profiler.ClassyProfilerError, match="nvprof"):
        profiler.profile(model, use_nvprof=True)


def test_a_layer_that_counts_itself_counts_for_its_children():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.inner(x)

        def flops(self, x):
            return 1000

        def activations(self, out, x):
            return 7

    model = torch.nn.Sequential(Block(), torch.nn.Linear(4, 2, bias=False))
    assert profiler.compute_flops(model, (4,)) == 1000 + 8
    assert profiler.compute_activations(model, (4,)) == 7 + 2
