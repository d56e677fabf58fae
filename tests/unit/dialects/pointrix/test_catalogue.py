"""Pointrix's own hooks by name."""

from hookloop.dialects.lazy import load
from hookloop.dialects.pointrix import HOOK_REGISTRY, hook
from hookloop.dialects.pointrix.catalogue import CATALOGUE


def test_every_row_is_a_hook_of_the_package_and_the_registry():
    for name, path in CATALOGUE.items():
        assert load(path) is getattr(hook, name) is HOOK_REGISTRY.get(name)
        assert issubclass(load(path), hook.Hook)
