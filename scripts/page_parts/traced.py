"""The page of what happens from a request to the return of `train()`, from runs that are traced."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from hookloop import Hook, Interrupted, Run
from hookloop.hooks import SaveCheckpoint, StopOnSignal
from hookloop.testing import tiny_trainer

PAGE = """\
# From a request to the return

What the engine calls, function by function, from the moment at which something is asked of a
training, or goes wrong in it, until `train()` returns. The lists below are those of trainings that
were traced when this page was written, so they name what there is. What is indented is called by
what stands above it. Calls of the data, of metrics and of records are left out, and so are those
deeper than {depth} levels. A checkpoint is written by a thread, which is not in the lists; what it
has finished is told by `Loop._tell_saved`, between two iterations, and by `Loop.close_checkpoints`.

{scenarios}
"""

ROOMS = ("engine", "trainer", "checkpoint.saving", "hooks.ending", "hooks.saving")
LEFT_OUT = (
    *("trainer.guard", "trainer.recording", "trainer.trained_with"),
    *("engine.checks", "checkpoint.saving.writer"),
)
# What they call depends on how far the thread is that writes.
LEAVES = ("Loop._tell_saved", "Loop._fire_saved", "Checkpoints.close")
PLUMBING = {"fire", "acts_at", "method_of", "interval_at", "kind_of", "may_request"}
DEPTH = 4
LIMIT = {"max_epochs": None, "max_iters": 5}


@dataclass
class Call:
    """A call, and the calls within it."""

    name: str
    inner: list[Call] = field(default_factory=list)

    def lines(self, depth: int = 0) -> list[str]:
        """Return the call and those within it, indented; of several alike, the first."""
        found = [f"{'    ' * depth}{self.name}"]
        if depth + 1 < DEPTH and not self.name.endswith(LEAVES):
            seen: set[str] = set()
            for one in self.inner:
                text = "\n".join(one.lines(depth + 1))
                if text not in seen:
                    seen.add(text)
                    found.append(text)
        return found


class Trace:
    """Records the calls of the engine in this thread from `begin` on."""

    def __init__(self) -> None:
        self.root = Call("")
        self._open: list[tuple[FrameType, Call | None]] = []

    def begin(self) -> None:
        """Start to record."""
        sys.setprofile(self._note)

    def end(self) -> None:
        """Stop."""
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            self._open.append((frame, self._entered(frame)))
        elif event == "return" and self._open and self._open[-1][0] is frame:
            self._open.pop()

    def _entered(self, frame: FrameType) -> Call | None:
        name = _name_of(frame)
        if name is None:
            return None
        parent = next((call for _, call in reversed(self._open) if call is not None), self.root)
        call = Call(name)
        parent.inner.append(call)
        return call


def _name_of(frame: FrameType) -> str | None:
    module = str(frame.f_globals.get("__name__", ""))
    room = module.removeprefix("hookloop.")
    if not module.startswith("hookloop.") or not room.startswith(ROOMS) or room in LEFT_OUT:
        return None
    code = frame.f_code
    if (
        code.co_name.startswith(("<", "__")) and code.co_name != "__call__"
    ) or code.co_name in PLUMBING:
        return None
    owner = code.co_qualname.rpartition(".")[0] if sys.version_info >= (3, 11) else ""
    kind = vars(sys.modules[module]).get(owner)
    if isinstance(vars(kind).get(code.co_name) if kind else None, property):
        return None
    return f"{room.replace('.', '/')}.py: {code.co_qualname}"


class AskAt(Hook):
    """Does something in the fourth iteration, and begins the trace there."""

    def __init__(self, trace: Trace, do: Callable[[Run], object]) -> None:
        self._trace = trace
        self._do = do
        self._is_done = False

    def after_train_iter(self, run: Run) -> None:
        """Ask."""
        if run.progress.iter == 4 and not self._is_done:
            self._is_done = True
            self._trace.begin()
            self._do(run)


def _fail(run: Run) -> None:
    raise RuntimeError("to look")


SCENARIOS: dict[str, tuple[str, Callable[[Run], object]]] = {
    "A stop": ("a hook calls `run.stop(reason)`", lambda run: run.stop("enough")),
    "A save": ("a hook calls `run.save()`", lambda run: run.save()),
    "A rewind": ("a hook calls `run.rewind(2)`", lambda run: run.rewind(2, everywhere=True)),
    "A signal": ("the process gets SIGTERM", lambda run: os.kill(os.getpid(), signal.SIGTERM)),
    "A failure": ("a hook raises an error", _fail),
}


def page() -> str:
    """Trace a training for each, and write the page."""
    parts = [
        f"## {title}\n\nIn the fourth iteration, {what}.\n\n```text\n{_traced(do)}\n```\n"
        for title, (what, do) in SCENARIOS.items()
    ]
    return PAGE.format(depth=DEPTH, scenarios="\n".join(parts))


def _traced(do: Callable[[Run], object]) -> str:
    trace = Trace()
    logging.disable(logging.CRITICAL)
    with TemporaryDirectory() as folder, contextlib.suppress(RuntimeError, Interrupted):
        hooks = [AskAt(trace, do), SaveCheckpoint(every="2 iters"), StopOnSignal()]
        try:
            tiny_trainer(*hooks, run_dir=Path(folder) / "run", val_data=None, **LIMIT).train()
        finally:
            trace.end()
            logging.disable(logging.NOTSET)
    lines = [line for call in trace.root.inner for line in call.lines()]
    return "\n".join(dict.fromkeys(lines))
