from pathlib import Path

import pytest

from hookloop.config.reading.overrides import override
from hookloop.config.tree import Config


def apply(tree: dict[str, object], *texts: str) -> Config:
    config = Config(tree, Path("a.yaml"), {("hooks",): "a.yaml:1", ("hooks", 0): "a.yaml:2"})
    for text in texts:
        override(config, text)
    return config


def problems(config: Config) -> list[str]:
    return [str(problem) for problem in config.problems]


def test_a_value_is_read_as_yaml_and_remembers_the_command_line() -> None:
    config = apply({"optimizer": {"lr": 0.1}}, "optimizer.lr=1e-3", "sizes=[1, 2]", "name=")
    assert config.tree == {"optimizer": {"lr": 0.001}, "sizes": [1, 2], "name": None}
    assert config.where(("optimizer", "lr")) == "command line: optimizer.lr=1e-3"


def test_a_value_may_contain_an_equals_sign() -> None:
    assert apply({}, "name=a=b").tree == {"name": "a=b"}


def test_missing_mappings_on_the_way_are_made() -> None:
    assert apply({}, "a.b.c=1").tree == {"a": {"b": {"c": 1}}}


def test_items_of_lists_are_reached_by_number() -> None:
    tree = {"hooks": [{"type": "A", "n": 1}, {"type": "B", "n": 1}]}
    config = apply(tree, "hooks.0.n=5", "hooks.-1.n=6")
    assert config.tree == {"hooks": [{"type": "A", "n": 5}, {"type": "B", "n": 6}]}
    assert config.where(("hooks", 0, "type")) == "a.yaml:2"
    assert config.where(("hooks", 0, "n")) == "command line: hooks.0.n=5"


def test_hooks_in_a_list_are_reached_by_type_name_or_path() -> None:
    tree = {
        "hooks": [
            "LogMetrics",
            {"StopAfter": {"epochs": 100}},
            {"my_project.hooks.MyHook": {"arg1": 10}},
            {"type": "pkg.mod:Other", "name": "second"},
        ]
    }
    config = apply(
        tree,
        "hooks.LogMetrics.every=5",
        "hooks.StopAfter.epochs=3",
        "hooks.my_project.hooks.MyHook.arg1=11",
        "hooks.MyHook.arg2=12",
        "hooks.second.x=1",
        "hooks.Other.y=2",
    )
    assert config.problems == []
    assert config.tree["hooks"] == [
        {"type": "LogMetrics", "every": 5},
        {"StopAfter": {"epochs": 3}},
        {"my_project.hooks.MyHook": {"arg1": 11, "arg2": 12}},
        {"type": "pkg.mod:Other", "name": "second", "x": 1, "y": 2},
    ]


def test_a_hook_in_a_list_is_removed_by_null() -> None:
    assert apply({"hooks": ["A", {"B": {}}]}, "hooks.B=null").tree == {"hooks": ["A", None]}


def test_named_hooks_are_reached_by_their_name() -> None:
    tree = {"hooks": {"ema": {"type": "EMA"}, "logger": "LogMetrics"}}
    config = apply(tree, "hooks.ema.momentum=0.9", "hooks.logger=null")
    assert config.tree == {"hooks": {"ema": {"type": "EMA", "momentum": 0.9}, "logger": None}}


def test_keys_with_dots_are_found() -> None:
    tree = {"hooks": {"my.module.Hook": {"n": 1}}}
    assert apply(tree, "hooks.my.module.Hook.n=2").tree == {"hooks": {"my.module.Hook": {"n": 2}}}


def test_a_bare_type_becomes_a_mapping() -> None:
    assert apply({"model": "net:Net"}, "model.depth=3").tree == {
        "model": {"type": "net:Net", "depth": 3}
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed", "an override is written key=value, without spaces."),
        ("=3", "an override is written key=value, without spaces."),
        ("seed=[1", "the value is not valid YAML: expected ',' or ']', but got '<stream end>'."),
        ("seed.x=3", "'seed' is 1: there is nothing below it to set."),
        ("hooks.5.n=3", "'hooks' has 3 entries: there is no 5."),
        ("hooks.StopAftr.n=3", "'hooks' has no entry 'StopAftr'. Did you mean 'StopAfter'?"),
        ("hooks.A.n=3", "'A' occurs more than once in 'hooks': write hooks.1 or hooks.2."),
    ],
)
def test_an_override_that_cannot_be_applied_is_a_problem(text: str, message: str) -> None:
    config = apply({"seed": 1, "hooks": ["StopAfter", "A", {"type": "A"}]}, text)
    assert problems(config) == [f"command line: {text}: {message}"]


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("hooks.again={type: Requeue}", {"name": "again", "type": "Requeue"}),
        ("hooks.again=Requeue", {"name": "again", "type": "Requeue"}),
        ("hooks.again.type=Requeue", {"name": "again", "type": "Requeue"}),
        ("hooks.Requeue={max_restarts: 3}", {"Requeue": {"max_restarts": 3}}),
    ],
)
def test_a_hook_is_added_to_a_list_as_to_a_mapping(text: str, entry: dict[str, object]) -> None:
    config = apply({"hooks": [{"type": "StopAfter", "epochs": 1}]}, text)
    assert not config.problems
    assert config.tree["hooks"] == [{"type": "StopAfter", "epochs": 1}, entry]


@pytest.mark.parametrize("text", ["hooks.StopAftr.epochs=2", "hooks.zz=null", "streams.c={a: 1}"])
def test_nothing_else_is_added_to_a_list(text: str) -> None:
    config = apply({"hooks": [{"type": "StopAfter"}], "streams": [{"type": "A"}]}, text)
    assert config.problems
