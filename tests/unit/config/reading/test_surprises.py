"""YAML 1.1 reads some values as something else; the user is warned, with the line."""

from pathlib import Path

import pytest

from hookloop.config.load import load

SURPRISES = [
    ("010", 8, "010 is read as 8, in octal: write 10, or '010' for the text."),
    ("-017", -15, "-017 is read as -15, in octal: write -17"),
    ("0o17", "0o17", "0o17 is read as text: write 017 for 15."),
    ("12:30:00", 45000, "12:30:00 is read as 45000, to the base of 60"),
    ("1:30.5", 90.5, None),  # Text, as in YAML 1.2: the rule for floats is our own.
    ("NO", False, "NO is read as false: write false, or 'NO' for the text."),
    ("on", True, "on is read as true"),
    ("Yes", True, "Yes is read as true"),
]
PLAIN = [
    "1e-3",
    "0",
    "00",
    "0x1F",
    "1_000",
    "true",
    "null",
    "~",
    "1.10",
    "2024-01-01",
    "'NO'",
    '"010"',
]


def read(tmp_path: Path, text: str, *overrides: str) -> object:
    (tmp_path / "a.yaml").write_text(text)
    return load(tmp_path / "a.yaml", overrides)


@pytest.mark.parametrize(("text", "value", "warning"), SURPRISES)
def test_a_surprise_is_warned_of_with_its_line(tmp_path, caplog, text, value, warning):
    config = read(tmp_path, f"vars:\n  first: 1\n  odd: [{text}]\n")
    messages = [record.getMessage() for record in caplog.records]
    if warning is None:
        assert not messages
        return
    assert config.tree["vars"]["odd"] == [value]
    assert len(messages) == 1
    assert "a.yaml:3: vars.odd[0]: " in messages[0]
    assert warning in messages[0]


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_read_as_it_looks_is_not_warned_of(tmp_path, caplog, text):
    read(tmp_path, f"vars: {{odd: {text}}}\n", f"vars.even={text}")
    assert not caplog.records


def test_an_override_is_warned_of(tmp_path, caplog):
    read(tmp_path, "seed: 1\n", "seed=010")
    assert [record.getMessage() for record in caplog.records] == [
        "command line: seed=010: 010 is read as 8, in octal: write 10, or '010' for the text."
    ]


def test_a_base_is_warned_of_under_its_own_name(tmp_path, caplog):
    (tmp_path / "base.yaml").write_text("vars: {country: NO}\n")
    read(tmp_path, "_base_: base.yaml\n")
    assert "base.yaml:1: vars.country" in caplog.text


def test_a_date_is_text(tmp_path):
    config = read(tmp_path, "name: 2024-01-01\n")
    assert config.tree["name"] == "2024-01-01"
