from pathlib import Path

import pytest
import yaml

from hookloop.runs.plain_yaml import FLOAT, dump, load


@pytest.mark.parametrize(
    "text", ["1e-3", "1e5", ".5e-3", "1.5", "-2E+4", ".inf", ".nan", "1_000.0", "3."]
)
def test_numbers_in_every_usual_spelling_are_floats(text: str) -> None:
    assert FLOAT.match(text)


@pytest.mark.parametrize("text", ["1", "e5", "1e", ".", "v1e5", "1.2.3"])
def test_other_text_is_not_a_float(text: str) -> None:
    assert not FLOAT.match(text)


def test_a_value_used_twice_is_written_without_anchors() -> None:
    shared = {"lr": 0.1}
    assert "&" not in dump({"a": shared, "b": shared})


def test_an_object_that_is_not_plain_is_written_as_its_text() -> None:
    assert yaml.safe_load(dump({"where": Path("a/b")})) == {"where": "a/b"}


def test_writing_leaves_the_rules_of_pyyaml_itself_alone() -> None:
    assert yaml.safe_load("1e-3") == "1e-3"


def test_what_is_written_is_read_back() -> None:
    value = {"lr": 1e-3, "tag": "1e-3", "on": None, "sizes": [8, 16], "text": "a\n\nb: c\n"}
    assert load(dump(value)) == value
    assert load(dump(value).encode()) == value


@pytest.mark.parametrize(
    "text",
    ["a: [", "a: !!python/name:os.system", "a: &x 1\nb: *x", "a: " + "[" * 20_000, "a: \x01"],
)
def test_what_is_not_plain_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not plain YAML"):
        load(text)


@pytest.mark.parametrize("level", ["[", "{a: ", "- ", "? "])
def test_a_text_that_is_nested_deeply_is_rejected_and_does_not_end_the_process(level: str) -> None:
    with pytest.raises(ValueError, match="more than 100 levels deep"):
        load(level * 200_000)
    assert load("[" * 50 + "]" * 50)
