"""iMIX's own hooks by name."""

from hookloop.dialects import import_name
from hookloop_dialects.imix import engine
from hookloop_dialects.imix.catalogue import CATALOGUE


def test_every_hook_of_the_package_has_its_row():
    assert set(CATALOGUE) == set(engine.hooks.MODULES)
    for name, path in CATALOGUE.items():
        assert import_name(path) is getattr(engine.hooks, name)
        assert import_name(path).__name__ == name
