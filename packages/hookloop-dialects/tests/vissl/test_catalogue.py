"""The hooks of ClassyVision and VISSL by name."""

from hookloop.dialects import import_name
from hookloop_dialects.vissl import hooks as ssl
from hookloop_dialects.vissl.catalogue import CATALOGUE
from hookloop_dialects.vissl.classy_vision import hooks as classy


def test_every_hook_of_both_packages_has_its_row():
    expected = set(classy.MODULES) | {
        name for name in ssl.MODULES if name != "default_hook_generator"
    }
    assert set(CATALOGUE) == expected
    for name, path in CATALOGUE.items():
        package = classy if name in classy.MODULES else ssl
        assert import_name(path) is getattr(package, name)
        assert isinstance(import_name(path), type)
