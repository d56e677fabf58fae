import sys

import pytest

from hookloop.cli.shared.table import align, show_table


def test_columns_are_aligned_without_trailing_spaces() -> None:
    assert align([("a", "bb", "c"), ("aaa", "b", "")]) == "a    bb  c\naaa  b"


def test_a_terminal_gets_a_framed_table_in_which_brackets_stay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_table(("name", "value"), [("[bold]", "1")], wide=())
    output = capsys.readouterr().out
    assert "─" in output
    assert "[bold]" in output


def test_anything_else_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("name", "value"), [("a", "1")], wide=())
    assert capsys.readouterr().out == "name  value\na     1\n"
