from pathlib import Path

from hookloop.config.tree import Config, nodes, spell


def config(tree: dict[str, object], marks: dict[tuple[str | int, ...], str]) -> Config:
    return Config(tree, Path("a.yaml"), marks)


def test_a_key_is_spelled_as_python_would() -> None:
    assert spell(("hooks", 2, "patience")) == "hooks[2].patience"
    assert spell(()) == ""


def test_a_child_wins_and_brings_its_lines() -> None:
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


def test_a_node_without_a_mark_has_that_of_its_nearest_ancestor() -> None:
    tree = config({"a": {"b": [1]}}, {(): "a.yaml", ("a",): "a.yaml:1"})
    assert tree.where(("a", "b", 0)) == "a.yaml:1"
    assert tree.where(("c",)) == "a.yaml"
    assert config({}, {}).where(("c",)) is None


def test_only_marks_of_the_command_line_are_overrides() -> None:
    tree = config({"a": {"b": 1}, "c": 2}, {("a",): "command line: a.b=1", ("c",): "a.yaml:2"})
    assert tree.is_override(("a", "b"))
    assert not tree.is_override(("c",))
    assert not tree.is_override(("d",))


def test_null_in_a_child_removes_what_a_base_has() -> None:
    base = config({"a": {"x": 1}, "b": 2}, {})
    base.absorb(config({"a": {"x": None, "y": None}, "b": None}, {}))
    assert base.removed == {("a", "x"), ("b",)}


def test_problems_carry_the_line_of_their_node() -> None:
    tree = config({"a": 1}, {("a",): "a.yaml:7"})
    tree.add_problem(("a",), "no.")
    tree.put(("a",), 2)
    assert [str(problem) for problem in tree.problems] == ["a.yaml:7: no."]
    assert tree.at(("a",)) == 2
