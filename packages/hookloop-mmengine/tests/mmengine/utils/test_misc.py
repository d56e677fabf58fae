"""The small functions that hook files import."""

import collections
import os.path

import pytest

from hookloop_mmengine.utils import misc


@pytest.mark.parametrize(
    ("value", "types", "kind", "wanted"),
    [
        ([1, 2], int, None, True),
        ((1, 2), int, None, True),
        ([1, "a"], int, None, False),
        ([1, "a"], (int, str), None, True),
        ([], int, None, True),
        ((1, 2), int, list, False),
        ("ab", str, None, True),
        (3, int, None, False),
    ],
)
def test_sequences_of_a_type(value, types, kind, wanted):
    assert misc.is_seq_of(value, types, kind) is wanted


def test_lists_tuples_and_text():
    assert misc.is_list_of([1], int)
    assert not misc.is_list_of((1,), int)
    assert misc.is_tuple_of((1,), int)
    assert not misc.is_tuple_of([1], int)
    assert misc.is_str("x")
    assert not misc.is_str(b"x")


def test_directories_are_made_once(tmp_path):
    misc.mkdir_or_exist(tmp_path / "a" / "b")
    misc.mkdir_or_exist(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    misc.mkdir_or_exist("")


@pytest.fixture
def folder(tmp_path):
    for name in ("b.txt", "a.TXT", "c.py", ".hidden.txt", "sub/d.txt", "sub/.e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, ["a.TXT", "b.txt", "c.py"]),
        ({"suffix": ".txt"}, ["b.txt"]),
        ({"suffix": (".txt", ".py")}, ["b.txt", "c.py"]),
        ({"suffix": ".txt", "case_sensitive": False}, ["a.TXT", "b.txt"]),
        ({"suffix": ".txt", "recursive": True}, ["b.txt", os.path.join("sub", "d.txt")]),
        ({"suffix": ".none"}, []),
    ],
)
def test_files_of_a_directory(folder, options, wanted):
    assert list(misc.scandir(folder, **options)) == wanted


def test_a_suffix_is_text(folder):
    with pytest.raises(TypeError, match='"suffix" must be a string or tuple'):
        list(misc.scandir(folder, suffix=3))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("os.path.join", os.path.join),
        ("os", os),
        ("collections.abc.Mapping", collections.abc.Mapping),
        ("collections.OrderedDict.fromkeys", collections.OrderedDict.fromkeys),
        ("no_such_module_here", None),
        ("os.no_such_name", None),
        ("os.path.join.more", None),
        ("collections.OrderedDict.nothing", None),
    ],
)
def test_objects_are_found_by_their_path(name, wanted):
    assert misc.get_object_from_string(name) == wanted


def test_a_function_wins_over_the_module_of_its_name(tmp_path, monkeypatch):
    package = tmp_path / "toy_ops"
    package.mkdir()
    (package / "nms.py").write_text("def nms(): return 1\n")
    (package / "__init__.py").write_text("from toy_ops.nms import nms\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert misc.get_object_from_string("toy_ops.nms")() == 1


def test_methods():
    class Base:
        def use(self): ...

    class Derived(Base):
        def use(self): ...

    assert misc.is_method_overridden("use", Base, Derived)
    assert misc.is_method_overridden("use", Base, Derived())
    assert not misc.is_method_overridden("use", Base, Base())
    with pytest.raises(AssertionError, match="Please pass class instead"):
        misc.is_method_overridden("use", Base(), Derived)
    assert misc.has_method([], "append")
    assert not misc.has_method(Base, "__doc__")


def test_modules_are_imported_by_name():
    assert misc.import_modules_from_strings("os.path") is os.path
    assert misc.import_modules_from_strings(["os.path", "collections"]) == [os.path, collections]
    assert misc.import_modules_from_strings(None) is None
    with pytest.raises(ImportError, match="Failed to import no_such: No module named 'no_such'"):
        misc.import_modules_from_strings("no_such")
    with pytest.warns(UserWarning, match="no_such failed to import and is ignored"):
        assert misc.import_modules_from_strings(["no_such"], True) == [None]
    for wrong in (3, [3]):
        with pytest.raises(TypeError):
            misc.import_modules_from_strings(wrong)
