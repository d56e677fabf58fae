"""Small things about models."""

import torch

from hookloop_dialects.vissl.models import model_helpers as helpers


def test_outputs_that_are_not_finite_are_found_in_containers():
    bad = torch.tensor([1.0, float("inf")])
    assert not helpers.model_output_has_nan([torch.ones(2), {"a": torch.ones(1)}, None])
    assert helpers.model_output_has_nan([torch.ones(2), {"a": (bad,)}])


def test_a_model_without_a_wrapper_is_itself():
    model = torch.nn.Linear(1, 1)
    assert helpers.get_no_ddp_model(model) is model
