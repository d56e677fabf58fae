"""Pointrix's own hooks by name."""

from hookloop.dialects import import_name
from hookloop_dialects.pointrix import HOOK_REGISTRY, hook
from hookloop_dialects.pointrix.catalogue import CATALOGUE


def test_every_row_is_a_hook_of_the_package_and_the_registry():
    for name, path in CATALOGUE.items():
        assert import_name(path) is getattr(hook, name) is HOOK_REGISTRY.get(name)
        assert issubclass(import_name(path), hook.Hook)
