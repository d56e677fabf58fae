"""A dict with attributes, and how two of them are merged."""

import copy
from collections import namedtuple

import pytest

from hookloop_mmengine.config.config_dict import (
    ConfigDict,
    attributed,
    merged,
    plain_dict,
)


def test_entries_are_attributes_on_every_level():
    cfg = ConfigDict(model={"layers": [{"size": 3}, ({"size": 4},)]})
    assert cfg.model.layers[0].size == 3
    assert cfg.model.layers[1][0].size == 4
    assert isinstance(cfg.model, ConfigDict)


def test_setting_and_deleting_attributes_changes_the_entries():
    cfg = ConfigDict(a=1)
    cfg.b = {"c": 2}
    assert cfg["b"].c == 2
    del cfg.a
    assert list(cfg) == ["b"]


def test_a_missing_attribute_names_itself():
    with pytest.raises(AttributeError, match="'ConfigDict' object has no attribute 'nothing'"):
        _ = ConfigDict().nothing
    with pytest.raises(AttributeError, match="nothing"):
        del ConfigDict().nothing
    with pytest.raises(KeyError):
        ConfigDict()["nothing"]


def test_it_is_made_like_a_dict():
    assert ConfigDict([("a", 1)], b=2) == ConfigDict({"a": 1, "b": 2}) == {"a": 1, "b": 2}


def test_updates_give_attributes_too():
    cfg = ConfigDict()
    cfg.update({"a": {"b": 1}}, c={"d": 2})
    assert (cfg.a.b, cfg.c.d) == (1, 2)
    assert cfg.setdefault("e", {"f": 3}).f == 3
    assert cfg.setdefault("e", None).f == 3


def test_a_copy_shares_entries_and_a_deep_copy_does_not():
    cfg = ConfigDict(a={"b": [1]})
    shallow, deep = cfg.copy(), copy.deepcopy(cfg)
    cfg.a.b.append(2)
    assert shallow.a is cfg.a
    assert shallow.a.b == [1, 2]
    assert deep.a.b == [1]
    assert isinstance(deep.a, ConfigDict)


def test_plain_dicts_have_no_attributes():
    cfg = ConfigDict(a={"b": [{"c": (1, {"d": 2})}]})
    plain = cfg.to_dict()
    assert plain == {"a": {"b": [{"c": (1, {"d": 2})}]}}
    assert type(plain["a"]) is dict
    assert type(plain["a"]["b"][0]["c"][1]) is dict
    assert plain_dict({"x": cfg}) == {"x": plain}


def test_other_containers_are_left_alone():
    pair = namedtuple("Pair", "one two")({"a": 1}, 2)
    assert attributed(pair) is pair
    assert attributed("text") == "text"


@pytest.mark.parametrize(
    ("child", "wanted"),
    [
        ({}, {"a": {"b": 1, "c": [1, 2]}, "d": 0}),
        ({"a": {"b": 2}}, {"a": {"b": 2, "c": [1, 2]}, "d": 0}),
        ({"a": {"c": [3]}}, {"a": {"b": 1, "c": [3]}, "d": 0}),
        ({"a": {"_delete_": True, "e": 1}}, {"a": {"e": 1}, "d": 0}),
        ({"a": {"_delete_": False, "e": 1}}, {"a": {"b": 1, "c": [1, 2], "e": 1}, "d": 0}),
        ({"a": None}, {"a": None, "d": 0}),
        (
            {"new": {"_delete_": True, "x": 1}},
            {"a": {"b": 1, "c": [1, 2]}, "d": 0, "new": {"x": 1}},
        ),
    ],
)
def test_a_child_is_merged_over_its_base(child, wanted):
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 0}
    assert merged(base, child) == wanted
    assert base == {"a": {"b": 1, "c": [1, 2]}, "d": 0}
