import importlib.util
from math import inf, nan

import pytest
import torch

from hookloop.hooks import _many_tensors


def load_without(names):
    """The module, as a torch without some private names would have it."""
    spec = importlib.util.spec_from_file_location("without", _many_tensors.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in names:
        assert getattr(module, name) is not getattr(_many_tensors, name)
    return module


@pytest.fixture
def plain(monkeypatch):
    for name in ("_foreach_copy_", "_foreach_lerp_", "_foreach_norm"):
        monkeypatch.delattr(torch, name)
    return load_without(["copy_all", "lerp_all", "norms_of"])


def tensors(seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in ((3,), (2, 5), (1, 1, 7))]


def test_without_torchs_private_kernels_the_numbers_are_the_same(plain):
    for share in (0.0, 0.1, 0.7, 1.0):
        ours, theirs, sources = tensors(1), tensors(1), tensors(2)
        plain.lerp_all(ours, sources, share)
        _many_tensors.lerp_all(theirs, sources, share)
        assert all(map(torch.equal, ours, theirs))
    plain.copy_all(ours, sources)
    assert all(map(torch.equal, ours, sources))
    for order in (2, inf):
        ours, theirs = plain.norms_of(sources, order), _many_tensors.norms_of(sources, order)
        assert all(map(torch.equal, ours, theirs))


def test_the_largest_number_shows_what_is_not_finite(plain):
    for module in (plain, _many_tensors):
        good, bad, worse = module.norms_of(
            [torch.ones(3), torch.tensor([1.0, nan]), torch.tensor([-inf, 2.0])], inf
        )
        assert good == 1 and bad.isnan() and worse == inf


def test_lists_of_unequal_length_are_rejected():
    for operate in (_many_tensors._copy, lambda a, b: _many_tensors._lerp(a, b, 0.5)):
        with pytest.raises(ValueError, match="shorter|longer"):
            operate(tensors(1), tensors(2)[:2])
