"""Find classes by the names of their modules."""

import logging

import pytest

from hookloop_dialects.emloop import utils


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "some_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "one.py").write_text("class A:\n    def __init__(self, *a, **k): self.got = a, k\n")
    (folder / "two.py").write_text("class B: pass\nclass C: pass\n")
    (folder / "three.py").write_text("class B: pass\nfrom some_package.two import C\n")
    (folder / "broken.py").write_text("raise RuntimeError('no')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "some_package"


def test_a_class_is_found_and_made(package, caplog):
    names = ["broken", "one", "three", "two"]
    assert utils.list_submodules(package) == [f"{package}.{name}" for name in names]
    with caplog.at_level(logging.WARNING):
        assert utils.get_class_module(package, "A") == "some_package.one"
    assert caplog.messages == ["'some_package.broken' cannot be imported: RuntimeError: no."]
    made = utils.create_object("some_package.one", "A", [1], {"b": 2})
    assert made.got == ((1,), {"b": 2})
    assert utils.parse_fully_qualified_name("a.b.C") == ("a.b", "C")


def test_the_same_class_in_two_modules_is_one(package):
    assert utils.get_class_module(package, "C") == "some_package.three"
    assert utils.get_class_module(package, "D") is None
    with pytest.raises(ValueError, match=r"Several modules have a 'B'"):
        utils.get_class_module(package, "B")
    found, broken = utils.find_class_module(package, "B")
    assert len(found) == 2 and broken[0][0] == "some_package.broken"
    assert utils.get_attribute("some_package.two", "B") is not None
