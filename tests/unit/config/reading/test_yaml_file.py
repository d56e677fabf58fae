from pathlib import Path

import pytest

from hookloop.config.reading.yaml_file import parse_value, read_yaml
from hookloop.config.tree import Config
from hookloop.errors import ConfigError


def read(tmp_path: Path, text: str) -> Config:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    return read_yaml(file, "a.yaml")


def problem(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    return str(caught.value)


def test_numbers_without_a_point_are_numbers(tmp_path: Path) -> None:
    tree = read(tmp_path, "a: 1e-3\nb: 1e5\nc: .5e-3\nd: 10\ne: 1e-3x\n").tree
    assert tree == {"a": 0.001, "b": 1e5, "c": 0.0005, "d": 10, "e": "1e-3x"}


def test_every_node_knows_the_line_of_its_key(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        "max_epochs: 3\nhooks:\n  - StopAfter:\n      epochs: 3\n  - {type: A, n: 2}\n",
    )
    assert config.where(("max_epochs",)) == "a.yaml:1"
    assert config.where(("hooks",)) == "a.yaml:2"
    assert config.where(("hooks", 0)) == "a.yaml:3"
    assert config.where(("hooks", 0, "StopAfter", "epochs")) == "a.yaml:4"
    assert config.where(("hooks", 1, "n")) == "a.yaml:5"
    assert config.where(("hooks", 1, "missing")) == "a.yaml:5"


def test_a_key_given_twice_is_a_problem_at_the_second(tmp_path: Path) -> None:
    config = read(tmp_path, "optimizer:\n  lr: 1\n  lr: 2\n")
    assert [str(problem) for problem in config.problems] == [
        "a.yaml:3: 'optimizer.lr' is given twice, first in line 2."
    ]


def test_merge_keys_of_yaml_work_and_are_no_duplicates(tmp_path: Path) -> None:
    config = read(tmp_path, "vars: &v {lr: 1, b: 2}\noptimizer:\n  <<: *v\n  lr: 3\n")
    assert config.tree["optimizer"] == {"lr": 3, "b": 2}
    assert config.problems == []


def test_words_that_yaml_takes_for_booleans_stay_words_as_keys(tmp_path: Path) -> None:
    assert read(tmp_path, "on: 1\nno: yes\n7: x\n").tree == {"on": 1, "no": True, 7: "x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [1, 2\n\n", "a.yaml:2: not valid YAML: what starts here is never closed."),
        ("a: 1\nb: 'x\n\n", "a.yaml:2: not valid YAML: what starts here is never closed."),
        ("? [a]\n: 1\n", "a.yaml:1: not valid YAML: a key is text or a number, not a list"),
        ("a: [1, 2\nb: 3\n", "a.yaml:2: not valid YAML: expected ',' or ']', but got"),
        ("a: b: c\n", "a.yaml:1: not valid YAML: mapping values are not allowed here. Check"),
        ("a:\n\tb: 1\n", "Indent with spaces, not with tabs."),
        ("a: {lr: ${vars.lr}}\n", 'Inside {...} an interpolation needs quotes: "${name}".'),
        ("a: !!python/object:os.system x\n", "could not determine a constructor"),
        ("a: &x [*x]\n", "a.yaml:1: not valid YAML: a value contains itself."),
        ("- a\n- b\n", "a.yaml:1: a config is a mapping of keys to values."),
        ("a: 1\nb: '\0'\n", "a.yaml:2: not valid YAML: the character '\\x00' is not allowed"),
        ("a: \x01\n", "a.yaml:1: not valid YAML: the character '\\x01' is not allowed"),
        ("a: 1\n---\nb: 2\n", "but found another document"),
    ],
)
def test_text_that_is_not_a_config_is_rejected_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    assert message in problem(tmp_path, text)


def test_an_empty_file_is_an_empty_config(tmp_path: Path) -> None:
    assert read(tmp_path, "# nothing\n").tree == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("1e-3", 0.001), ("true", True), ("null", None), ("", None), ("[1, a]", [1, "a"])],
)
def test_a_single_value_is_read_as_in_a_file(text: str, value: object) -> None:
    assert parse_value(text) == value
