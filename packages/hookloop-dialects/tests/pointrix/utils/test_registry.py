"""A project's own registries."""

import pytest

from hookloop_dialects.pointrix.utils.registry import Registry


def test_classes_are_registered():
    registry = Registry("MODELS", modules=["project.models"])

    @registry.register()
    class Net:
        pass

    assert registry.get("Net") is Net and "Net" in registry and "Other" not in registry
    with pytest.raises(KeyError, match="'Nat' is not registered in MODELS.*Did you mean 'Net'"):
        registry.get("Nat")
