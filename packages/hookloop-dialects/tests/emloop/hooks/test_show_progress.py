"""The progress of the current stream."""

import io
from types import SimpleNamespace

import pytest

from hookloop_dialects.emloop.hooks import ShowProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    """Returns the lines that a terminal was given since the last call."""
    terminal = Terminal()
    module = "hookloop_dialects.emloop.hooks.show_progress.sys"
    monkeypatch.setattr(module, SimpleNamespace(stdout=terminal))

    def take():
        lines = terminal.getvalue().split("\r\x1b[2K")[1:]
        terminal.seek(0)
        terminal.truncate()
        return lines

    return take


def test_the_first_epoch_counts_and_the_next_shows_a_bar(shown):
    hook = ShowProgress()
    for _ in range(4):
        hook.after_batch("train", {})
    hook.after_epoch(epoch_id=0)
    assert shown() == ["train: 1", "train: 2", "train: 3", "train: 4", ""]
    hook.after_batch("train", {})
    (line,) = shown()
    assert line.startswith(f"train: |{'=' * 10}{'-' * 30}| 1/4=25.0% ")


def test_a_data_set_may_have_the_number_of_batches(shown):
    hook = ShowProgress(dataset=SimpleNamespace(num_batches={"train": 2}))
    for stream in ("train", "train", "valid"):
        hook.after_batch(stream, {})
    lines = shown()
    assert "1/2=50.0%" in lines[0]
    assert f"|{'=' * 40}| 2/2=100.0% 0:00:00" in lines[1]
    assert lines[2] == "valid: 1"


def test_more_batches_than_expected_do_not_overfill_the_bar(shown):
    hook = ShowProgress(dataset=SimpleNamespace(num_batches={"train": 1}))
    hook.after_batch("train", {})
    hook.after_batch("train", {})
    assert f"|{'=' * 40}| 2/1" in shown()[1]


def test_nothing_is_shown_where_there_is_no_terminal(capsys):
    hook = ShowProgress()
    hook.after_batch("train", {})
    hook.after_epoch(epoch_id=0)
    assert capsys.readouterr().out == ""
