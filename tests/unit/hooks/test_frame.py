"""The bars fit the window, whatever its width, and leave nothing behind when it changes."""

import io

import pyte
import pytest
from rich.console import Console
from rich.live import Live

from hookloop.hooks.showing._frame import Frame

NUMBERS = [f"metric_{index} 0.{index}" for index in range(9)]


class Window(io.StringIO):
    """An emulated terminal that a console writes to."""

    def __init__(self, columns, *, reflows=False):
        super().__init__()
        self.columns = columns
        self.reflows = reflows
        self.screen = pyte.Screen(columns, 30)
        self.stream = pyte.Stream(self.screen)
        self.screen.set_mode(pyte.modes.LNM)

    def isatty(self):
        return True

    def write(self, text):
        self.stream.feed(text)
        return len(text)

    def resize(self, columns):
        """Change the width as terminals do: most wrap the lines that no longer fit."""
        if not self.reflows:
            self.screen.resize(30, columns)
            return
        row = self.screen.cursor.y
        before = [line.rstrip() for line in self.screen.display[: row + 1]]
        wrapped = []
        for line in before:
            wrapped += [line[at : at + columns] for at in range(0, len(line), columns)] or [""]
        self.screen.resize(30, columns)
        self.screen.reset()
        self.screen.set_mode(pyte.modes.LNM)
        self.stream.feed("\n".join(wrapped))

    def lines(self):
        return [line.rstrip() for line in self.screen.display if line.strip()]


class Shown:
    def __init__(self, window):
        self.window = window
        self.console = Console(file=window, force_terminal=True, width=window.columns, height=30)
        self.frame = Frame(self.console)
        self.bar = self.frame.add("run", 1000)
        self.frame.bars.update(self.bar, completed=100)
        self.frame.state = "epoch 1/9  eta 0:01:00"
        self.frame.numbers = NUMBERS
        self.live = Live(self.frame, console=self.console, transient=True, auto_refresh=False)

    def narrow(self, columns):
        self.window.resize(columns)
        self.console.width = columns
        self.live.refresh()


@pytest.fixture(autouse=True)
def _terminal(monkeypatch):
    for name in ("TMUX", "XTERM_VERSION", "COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


# 64 columns is the width from which the state of the run is beside its bar.
@pytest.mark.parametrize("columns", [24, 40, 63, 64, 80, 132, 250])
def test_the_bar_fills_the_window_and_no_number_is_cut(columns):
    window = Window(columns)
    shown = Shown(window)
    shown.live.start()
    shown.live.refresh()
    first, *others = window.lines()
    assert first.startswith(("  run ━", "  run ╸"))
    assert "100/1000" in first
    assert columns - 2 <= len(first) <= columns
    text = " ".join(" ".join(others).split())
    for number in NUMBERS:
        assert number in text
    assert ("eta 0:01:00" in first) == (columns >= 64)
    assert "eta 0:01:00" in first + text
    shown.live.stop()
    assert window.lines() == []


@pytest.mark.parametrize("reflows", [True, False])
@pytest.mark.parametrize(
    ("before", "after"), [(120, 70), (120, 40), (80, 79), (250, 30), (70, 120)]
)
def test_a_window_that_changes_its_width_is_left_clean(before, after, reflows, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color" if reflows else "linux")
    window = Window(before, reflows=reflows)
    shown = Shown(window)
    shown.console.print("kept")
    shown.live.start()
    shown.live.refresh()
    shown.narrow(after)
    shown.live.refresh()
    lines = window.lines()
    assert lines[0] == "kept"
    assert sum("━" in line for line in lines) == 1
    text = " ".join(" ".join(lines).split())
    assert all(text.count(number) == 1 for number in NUMBERS)
    shown.live.stop()
    assert window.lines() == ["kept"]
