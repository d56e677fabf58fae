import io
import sys
import types

import pytest
from tests.tiny import make_classifier

from hookloop.hooks.showing import _displays
from hookloop.hooks.showing._displays import REFRESH, Bars, Lines, Notebook, choose_display


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_displays, "monotonic", clock)
    monkeypatch.setenv("TERM", "xterm")
    return clock


@pytest.fixture
def notebook(monkeypatch):
    """IPython as a notebook has it; the fixture is the list of all contents of the output."""
    contents = []

    class Handle:
        def update(self, content, raw):
            contents.append(content["text/plain"])

    def display(content, raw, display_id):
        assert contents == []  # There is one output.
        contents.append(content["text/plain"])
        return Handle()

    fake = types.ModuleType("IPython")
    fake.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    fake.display = types.SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    return contents


@pytest.fixture
def run(tmp_path):
    trainer = make_classifier(run_dir=tmp_path, max_epochs=2)
    trainer.train()
    return trainer.run


def test_the_output_decides_on_the_display(monkeypatch, notebook):
    assert choose_display(io.StringIO()) is Lines
    assert choose_display(Terminal()) is Bars
    assert choose_display(None) is Notebook
    sys.modules["IPython"].get_ipython = types.SimpleNamespace  # A shell has no kernel.
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert choose_display(None) is Bars
    sys.modules["IPython"].get_ipython = lambda: None  # Imported, but not running.
    assert choose_display(None) is Bars


def test_a_closed_or_missing_output_gets_lines(monkeypatch):
    closed = Terminal()
    closed.isatty = io.StringIO.isatty.__get__(closed)
    closed.close()
    assert choose_display(closed) is Lines
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert choose_display(None) is Lines


def test_lines_are_written_at_once_and_show_no_running_evaluation(run):
    file = io.StringIO()
    lines = Lines(file)
    lines.start(run)
    assert lines.begin_update() and lines.begin_update()
    lines.show_training(run, {"loss": 0.5})
    lines.show_evaluation(run, 1, 3)
    lines.stop()
    assert file.getvalue() == "epoch 3/2  iter 6/6  loss 0.5  lr 0.1  eta ?\n"


@pytest.mark.parametrize("make", [Bars, Notebook])
def test_an_update_starts_the_next_interval(make, clock, run, notebook):
    display = make(Terminal())
    display.start(run)
    try:
        assert display.begin_update() and not display.begin_update()
        clock.now += make.REFRESH / 2 if make is Notebook else REFRESH / 2
        assert not display.begin_update()
        clock.now += make.REFRESH if make is Notebook else REFRESH
        assert display.begin_update() and not display.begin_update()
    finally:
        display.stop()


def test_bars_are_not_updated_before_they_are_started_or_after_they_stopped(clock, run):
    bars = Bars(Terminal())
    assert not bars.begin_update()
    bars.show_line("[bold]a line[/bold]")  # Without bars, and without markup.
    bars.start(run)
    bars.stop()
    clock.now += 1
    assert not bars.begin_update()
    bars.stop()


def test_bars_show_training_and_evaluation(clock, run):
    file = Terminal()
    bars = Bars(file)
    bars.start(run)
    bars.show_training(run, {"loss": 0.5, "iter_time": 1.0})
    tasks = bars._frame.bars.tasks
    assert [(task.completed, task.total) for task in tasks[:2]] == [(6, 6), (3, 3)]
    assert bars._frame.numbers[:2] == ["loss 0.5", "lr 0.1"]
    assert not tasks[2].visible
    bars.show_evaluation(run, 2, None)
    assert (tasks[2].visible, tasks[2].completed, tasks[2].total) == (True, 2, None)
    bars.show_training(run, {})
    assert not tasks[2].visible
    bars.show_line("[bold]a line[/bold]")
    bars.stop()
    assert "[bold]a line[/bold]" in file.getvalue()


def test_a_notebook_updates_one_output(run, notebook):
    display = Notebook(None)
    display.show_line("first")
    display.show_training(run, {"loss": 0.5})
    assert notebook[-1].startswith(f"first\n[{'#' * 30}]  epoch 3/2  iter 6/6  loss 0.5")
    display.show_evaluation(run, 2, 5)
    assert notebook[-1] == "first\ntrain: 2/5"
    for line in range(100):
        display.show_line(str(line))
    display.stop()
    shown = notebook[-1].splitlines()
    assert shown == [str(line) for line in range(100 - Notebook.LINES, 100)]
