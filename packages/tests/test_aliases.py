"""Import aliases: foreign names for our modules, for a while."""

import importlib
import pickle
import sys
from multiprocessing import spawn

import pytest

from hookloop import dialects
from hookloop.errors import HookError


def test_nothing_is_aliased_by_itself():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("mmengine")


def test_a_foreign_name_is_our_module():
    import hookloop_mmengine.hooks as ours

    with dialects.alias("mmengine"):
        import mmengine.hooks
        from mmengine.hooks.hook import Hook

        assert mmengine.hooks is ours
        assert Hook is ours.Hook
        assert mmengine.hooks.__name__ == "hookloop_mmengine.hooks"
        assert mmengine.hooks.__spec__.name == "hookloop_mmengine.hooks"


def test_undoing_takes_the_names_away():
    alias = dialects.alias("mmengine")
    importlib.import_module("mmengine.runner")
    alias.undo()
    assert not [name for name in sys.modules if name.split(".")[0] == "mmengine"]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("mmengine.runner")


def test_one_alias_covers_several_dialects_and_all_their_packages():
    with dialects.alias("vissl", "pointrix") as alias:
        assert {"vissl", "classy_vision", "fvcore", "pointrix"} <= set(alias.packages)
        import classy_vision.hooks
        import pointrix.hook

        assert classy_vision.hooks.ClassyHook.__name__ == "ClassyHook"
        assert pointrix.hook.Hook.__module__.startswith("hookloop_dialects.pointrix")


def test_aliases_can_be_nested_and_undone_twice():
    with dialects.alias("mmengine"):
        with dialects.alias("mmengine") as inner:
            assert inner.packages == {"mmengine": "hookloop_mmengine"}
            importlib.import_module("mmengine.hooks")
        inner.undo()
        importlib.import_module("mmengine.hooks")  # The outer alias still holds.


def test_what_was_imported_stays_usable_and_can_be_pickled():
    import pickle

    with dialects.alias("mmengine"):
        from mmengine.hooks import Hook
    hook = pickle.loads(pickle.dumps(Hook()))
    assert type(hook) is Hook


def test_the_message_for_a_module_that_is_not_offered_names_ours():
    with dialects.alias("mmengine"), pytest.raises(ModuleNotFoundError, match="is not offered"):
        importlib.import_module("mmengine.analysis")


def test_an_installed_package_is_left_alone(monkeypatch, tmp_path):
    package = tmp_path / "mmengine"
    package.mkdir()
    (package / "__init__.py").write_text("real = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with dialects.alias("mmengine") as alias:
        assert alias.packages == {}
        assert importlib.import_module("mmengine").real
    del sys.modules["mmengine"]


@pytest.mark.parametrize(("package", "dialect"), [("classy_vision", "vissl"), ("cxflow", "emloop")])
def test_a_package_in_place_of_its_dialect_is_answered_with_the_dialect(package, dialect):
    with pytest.raises(HookError, match=f"'{package}' is a package, not a dialect.*'{dialect}'"):
        dialects.alias(package)


def test_an_unknown_dialect_is_rejected_with_the_nearest():
    with pytest.raises(HookError, match="'mmengine'"):
        dialects.alias("mmengin")


def test_a_spawned_process_has_the_aliases_before_it_imports_the_script(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    with dialects.alias("mmengine"):
        # The rest of it can be pickled only while a process is being started.
        data = pickle.dumps(spawn.get_preparation_data("worker")["hookloop_aliases"])
    assert "hookloop_aliases" not in spawn.get_preparation_data("worker")
    pickle.loads(data)  # What the other process does first.
    from mmengine.hooks import Hook

    assert Hook.__module__.startswith("hookloop_mmengine.")
    for name in [name for name in sys.modules if name.partition(".")[0] == "mmengine"]:
        monkeypatch.delitem(sys.modules, name)


def test_a_system_without_a_graft_is_named_with_those_that_have_one():
    with pytest.raises(HookError, match="no graft of 'emloop', only of: mmengine"):
        dialects.graft("emloop")


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(HookError, match="real mmengine, which is not installed: pip install"):
        dialects.graft("mmengine")


def test_an_unknown_graft_is_rejected_with_the_nearest():
    with pytest.raises(HookError, match="Did you mean 'mmengine'"):
        dialects.graft("mmengin")
