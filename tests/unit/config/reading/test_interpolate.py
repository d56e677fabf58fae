from pathlib import Path

import pytest

from hookloop.config.reading.interpolate import escape, interpolate
from hookloop.config.tree import Config


def resolve(tree: dict[str, object]) -> Config:
    config = Config(tree, Path("a.yaml"), {(name,): f"a.yaml:{n}" for n, name in enumerate(tree)})
    interpolate(config)
    return config


def test_a_whole_value_keeps_its_type_and_is_a_copy() -> None:
    tree = resolve({"a": {"b": [1, {"c": 2.5}]}, "x": "${a.b}", "y": "${a.b.1.c}"}).tree
    assert tree["x"] == [1, {"c": 2.5}]
    assert tree["y"] == 2.5
    assert tree["x"] is not tree["a"]["b"]  # type: ignore[index]


def test_inside_text_a_reference_is_written_in() -> None:
    assert resolve({"lr": 0.1, "name": "lr=${lr}, twice: ${lr}"}).tree["name"] == (
        "lr=0.1, twice: 0.1"
    )


def test_references_to_references_are_followed() -> None:
    tree = resolve({"a": "${b.x}", "b": {"x": "n ${c}", "y": "${a}"}, "c": 3}).tree
    assert tree == {"a": "n 3", "b": {"x": "n 3", "y": "n 3"}, "c": 3}


def test_the_environment_is_read_as_values_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKLOOP_LR", "1e-3")
    monkeypatch.setenv("HOOKLOOP_TEXT", "[a, b")
    monkeypatch.delenv("HOOKLOOP_NONE", raising=False)
    tree = resolve(
        {
            "lr": "${env:HOOKLOOP_LR}",
            "text": "${env:HOOKLOOP_TEXT}",
            "in_text": "lr ${env:HOOKLOOP_LR}",
            "default": "${env:HOOKLOOP_NONE, 5}",
            "words": "${env:HOOKLOOP_NONE,a, b}",
        }
    ).tree
    assert tree == {
        "lr": 0.001,
        "text": "[a, b",
        "in_text": "lr 1e-3",
        "default": 5,
        "words": "a, b",
    }


def test_a_doubled_dollar_is_no_reference() -> None:
    assert resolve({"a": "costs $${price} $5"}).tree == {"a": "costs ${price} $5"}
    assert resolve({"a": escape("${price}")}).tree == {"a": "${price}"}


def test_references_that_lead_nowhere_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOKLOOP_NONE", raising=False)
    config = resolve(
        {"lr": 1, "a": "${lrr}", "b": "${c}", "c": "${b}", "d": "${d}", "e": "${env:HOOKLOOP_NONE}"}
    )
    assert [str(problem) for problem in config.problems] == [
        "a.yaml:1: a: '${lrr}' refers to nothing. Did you mean 'lr'?",
        "a.yaml:2: b: '${c}' refers to itself: c -> b -> c.",
        "a.yaml:3: c: '${b}' refers to itself: b -> c -> b.",
        "a.yaml:4: d: '${d}' refers to itself: d -> d.",
        "a.yaml:5: e: the environment variable 'HOOKLOOP_NONE' is not set. "
        "Set it, or give a default: ${env:HOOKLOOP_NONE,default}.",
    ]
