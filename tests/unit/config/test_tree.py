from pathlib import Path

from hookloop.config.tree import Config, nodes, spell


def config(tree: dict[str, object], marks: dict[tuple[str | int, ...], str]) -> Config:
    return Config(tree, Path("a.yaml"), marks)


def test_a_key_is_spelled_as_python_would() -> None:
    assert spell(("hooks", 2, "patience")) == "hooks[2].patience"
    assert spell(()) == ""


def test_a_child_wins_and_brings_its_places() -> None:
    base = config(
        {"a": {"x": 1, "y": 2}, "b": [1, 2]},
        {("a",): "base:1", ("a", "x"): "base:2", ("a", "y"): "base:3", ("b", 1): "base:5"},
    )
    base.absorb(
        config({"a": {"x": 9}, "b": [3]}, {("a",): "c:1", ("a", "x"): "c:2", ("b",): "c:3"})
    )
    assert base.tree == {"a": {"x": 9, "y": 2}, "b": [3]}
    assert base.where(("a", "x")) == "c:2"
    assert base.where(("a", "y")) == "base:3"
    assert base.where(("b", 1)) == "c:3"


def test_a_mapping_marked_for_replacing_does_not_merge() -> None:
    base = config({"a": {"x": 1, "y": 2}}, {})
    base.absorb(config({"a": {"_delete_": True, "z": 3}}, {}))
    assert base.tree == {"a": {"_delete_": True, "z": 3}}


def test_nodes_come_with_their_keys() -> None:
    assert list(nodes({"a": [1]})) == [((), {"a": [1]}), (("a",), [1]), (("a", 0), 1)]
