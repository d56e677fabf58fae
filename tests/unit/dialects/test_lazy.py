"""Names that are imported when they are first used."""

import sys

import pytest

from hookloop.dialects.lazy import import_name, lazy_names

PACKAGE = """
from hookloop.dialects.lazy import lazy_names

__all__ = ["Knot", "Rope", "here"]
here = 1
__getattr__, __dir__ = lazy_names(
    __name__, {"Knot": f"{__name__}.knots", "Rope": f"{__name__}.ropes"}, __all__
)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with two lazy names, of which one module cannot be imported."""
    folder = tmp_path / "lazy_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "knots.py").write_text("class Knot: ...\n")
    (folder / "ropes.py").write_text("import a_package_that_is_not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("lazy_package")
    for name in [name for name in sys.modules if name.partition(".")[0] == "lazy_package"]:
        del sys.modules[name]


def test_a_path_leads_to_its_object():
    import collections

    assert import_name("collections:OrderedDict") is collections.OrderedDict
    with pytest.raises(AttributeError, match="NoSuchThing"):
        import_name("collections:NoSuchThing")
    with pytest.raises(ModuleNotFoundError):
        import_name("no_such_module:Thing")


def test_a_module_is_imported_with_the_first_use_of_its_name(package):
    assert "lazy_package.knots" not in sys.modules
    first = package.Knot
    assert first is sys.modules["lazy_package.knots"].Knot
    assert vars(package)["Knot"] is first  # The next access does not call __getattr__.


def test_a_module_that_cannot_be_imported_stops_only_its_own_names(package):
    assert package.Knot.__name__ == "Knot"
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_installed"):
        package.Rope  # noqa: B018 - the access is what is tested


def test_an_unknown_name_is_an_attribute_error_like_any_other(package):
    assert not hasattr(package, "Knott")
    with pytest.raises(AttributeError, match="'lazy_package'.*'Knott'"):
        package.Knott  # noqa: B018 - the access is what is tested
    with pytest.raises(ImportError, match="'Knott'"):
        exec("from lazy_package import Knott", {})


def test_dir_lists_lazy_names_before_they_are_imported(package):
    assert dir(package) == ["Knot", "Rope", "here"]


def test_the_list_of_names_is_a_copy():
    _, list_names = lazy_names("os", {}, ["a"])
    list_names().append("b")
    assert list_names() == ["a"]
