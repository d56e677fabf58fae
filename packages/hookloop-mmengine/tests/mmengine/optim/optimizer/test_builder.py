"""The paths under which files import wrappers of optimizers."""

import importlib

import pytest

from hookloop_mmengine import optim
from hookloop_mmengine.optim.optimizer.builder import TORCH_OPTIMIZERS


def test_the_names_of_torch():
    assert {"SGD", "AdamW"} <= set(TORCH_OPTIMIZERS)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("optimizer_wrapper", "OptimWrapper"),
        ("amp_optimizer_wrapper", "AmpOptimWrapper"),
        ("optimizer_wrapper_dict", "OptimWrapperDict"),
        ("default_constructor", "DefaultOptimWrapperConstructor"),
        ("base", "BaseOptimWrapper"),
        ("builder", "build_optim_wrapper"),
    ],
)
def test_a_path_has_the_class_of_optim(path, name):
    home = importlib.import_module(f"hookloop_mmengine.optim.optimizer.{path}")
    assert getattr(home, name) is getattr(optim, name) is getattr(optim.optimizer, name)


def test_what_is_not_offered_is_rejected():
    for module in (optim, optim.optimizer):
        with pytest.raises(ImportError, match="ApexOptimWrapper is not offered.*AmpOptimWrapper"):
            _ = module.ApexOptimWrapper
