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


def test_lists_and_tuples():
    assert misc.is_list_of([1], int)
    assert not misc.is_list_of((1,), int)
    assert misc.is_tuple_of((1,), int)
    assert not misc.is_tuple_of([1], int)


def test_directories_are_made_once(tmp_path):
    misc.mkdir_or_exist(tmp_path / "a" / "b")
    misc.mkdir_or_exist(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    misc.mkdir_or_exist("")


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
