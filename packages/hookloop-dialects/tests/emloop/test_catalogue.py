"""emloop's own hooks by name."""

from hookloop.dialects import import_name
from hookloop_dialects.emloop import hooks
from hookloop_dialects.emloop.catalogue import CATALOGUE
from hookloop_dialects.emloop.tensorflow_hooks.hooks import WriteTensorboard


def test_every_hook_of_the_package_has_its_row():
    assert set(hooks.MODULES) <= set(CATALOGUE)
    for name in hooks.MODULES:
        assert import_name(CATALOGUE[name]) is getattr(hooks, name)


def test_all_names_of_the_hook_for_tensorboard_are_one_hook():
    rows = [name for name in CATALOGUE if "ensor" in name]
    assert len(rows) == 5
    assert {import_name(CATALOGUE[name]) for name in rows} == {WriteTensorboard}
