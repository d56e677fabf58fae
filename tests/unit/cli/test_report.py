from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from hookloop.cli.shared.report import frame_in_user_code, reporting
from hookloop.errors import ConfigError, DataError, Problem


def run(function: Callable[[], int], *args: str) -> Result:
    return CliRunner().invoke(click.command()(reporting(function)), args)


def test_what_a_verb_returns_is_the_exit_code() -> None:
    assert run(lambda: 0).exit_code == 0
    assert run(lambda: 130).exit_code == 130


def test_each_problem_is_a_line_of_its_own() -> None:
    def verb() -> int:
        raise ConfigError([Problem("no.", "a.yaml:1"), Problem("neither.", "a.yaml:2")])

    result = run(verb)
    assert result.exit_code == 2
    assert result.stderr == "error: a.yaml:1: no.\nerror: a.yaml:2: neither.\n"


def test_a_problem_caused_by_user_code_says_how_to_see_more() -> None:
    def verb() -> int:
        try:
            raise ImportError("x")
        except ImportError as error:
            raise ConfigError([Problem("no.")]) from error

    assert run(verb).stderr == "error: no.\n  --traceback shows where it comes from\n"
    assert "ImportError: x" in run(verb, "--traceback").stderr


def test_notes_are_shown() -> None:
    def verb() -> int:
        error = DataError("empty.")
        error.add_note("while building train_data")
        raise error

    assert run(verb).stderr == "error: empty.\n  while building train_data\n"


def test_an_exception_of_the_user_is_shown_with_its_line() -> None:
    def verb() -> int:
        raise ValueError("out of range")

    result = run(verb)
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0] == "error: ValueError: out of range"
    assert "test_report.py:" in lines[1]
    assert lines[2:] == ['    raise ValueError("out of range")', "  --traceback shows all"]
    assert "Traceback (most recent call last)" in run(verb, "--traceback").stderr


def test_the_place_is_in_the_users_code_also_when_a_library_raised() -> None:
    def parse(text: str) -> Path:
        return Path(text).relative_to("/somewhere")

    with pytest.raises(ValueError, match="subpath") as caught:
        parse("other")
    frame = frame_in_user_code(caught.value)
    assert frame is not None
    assert frame.name == "parse"


def test_usage_errors_are_left_to_click() -> None:
    def verb() -> int:
        raise click.UsageError("no such thing")

    assert run(verb).exit_code == 2


@pytest.mark.parametrize(("no_color", "colored"), [("1", False), (None, True)])
def test_colours_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, no_color: str | None, colored: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)

    def verb() -> int:
        raise DataError("empty.")

    command = click.command()(reporting(verb))
    result = CliRunner().invoke(command, color=True)
    assert ("\x1b[31m" in result.stderr) == colored


def test_a_message_of_many_pages_is_cut() -> None:
    def verb() -> int:
        raise ValueError("x" * 5000)

    assert "... (4,000 characters more)" in run(verb).stderr
    assert len(run(verb).stderr) < 1500
