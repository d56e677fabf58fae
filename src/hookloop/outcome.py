"""How a run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hookloop.every import count_of
from hookloop.runs.policy import is_of_machine
from hookloop.runs.series import History, history
from hookloop.runs.shown import make_safe_line

if TYPE_CHECKING:
    from hookloop.checkpoint.choose import BestCheckpoint

Status = Literal["running", "completed", "stopped", "interrupted", "failed"]


@dataclass(frozen=True)
class Disabled:
    """A hook that failed and is left out for the rest of the run: where, and why."""

    hook: str
    point: str
    error: str

    def __str__(self) -> str:
        return f"{self.hook} failed at {self.point}: {self.error}"


MOST_SHOWN = 6
"""How many metrics the shown form of an outcome has."""


@dataclass(frozen=True, repr=False)
class Outcome:
    """How a run ended.

    >>> Outcome(
    ...     "completed", metrics={"val/loss": 0.25, "train/loss": 1 / 3}, run_dir=Path("runs/a")
    ... )
    <Outcome: completed, val/loss=0.25, train/loss=0.3333, in 'runs/a'>

    >>> Outcome("interrupted", "SIGTERM", signal=15).exit_code
    143
    >>> print(Outcome("completed", disabled=(Disabled("csv", "after_epoch", "OSError: full"),)))
    completed (without the hook csv, which failed)
    """

    status: Status
    reason: str = ""
    signal: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    run_dir: Path | None = None
    problem: str | None = None
    """What was not saved, if the last checkpoint could not be."""
    disabled: tuple[Disabled, ...] = ()
    """The hooks that failed and were left out; their failure does not count as the run's."""
    best: BestCheckpoint | None = None
    """The best checkpoint by the first metric that `SaveCheckpoint` watches, if one is kept."""
    all_best: tuple[BestCheckpoint, ...] = ()
    """The best checkpoints of each metric, the best first, in the order of the metrics."""

    @cached_property
    def history(self) -> History:
        """The metrics that the run has written, a column for each; read from its directory.

        It has those of earlier starts of the run as well. `History.to_pandas` makes a table of
        them, with a row for each iteration.
        """
        return History() if self.run_dir is None else history(self.run_dir, afterwards=False)

    @property
    def exit_code(self) -> int:
        """The exit code of a process that did nothing but this run."""
        if self.status == "interrupted":
            return 128 + (self.signal or 2)
        return 1 if self.status == "failed" or self.problem else 0

    def __repr__(self) -> str:
        # Results first: a notebook shows this after a training.
        first = ("test/", "val/", "train/loss", "train_epoch/")
        order = {
            name: next((n for n, a in enumerate(first) if name.startswith(a)), len(first))
            for name in self.metrics
            if not is_of_machine(name)
        }
        names = sorted(order, key=lambda name: order[name])
        shown = [f"{name}={self.metrics[name]:.4g}" for name in names[:MOST_SHOWN]]
        left = len(names) - len(shown)
        more = [f"{count_of(left, 'more metric')}"] if left else []
        where = [f"in '{self.run_dir}'"] if self.run_dir is not None else []
        best = [f"best checkpoint '{self.best.path}'"] if self.best is not None else []
        lost = [self.problem] if self.problem is not None else []
        return f"<Outcome: {', '.join([str(self), *shown, *more, *best, *lost, *where])}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: how it ended, and a table of the metrics."""
        lines = {
            "run": str(self.run_dir) if self.run_dir is not None else "",
            "best checkpoint": str(self.best.path) if self.best is not None else "",
            "problem": self.problem or "",
        }
        shown = "".join(
            f"<br>{name}: <code>{escape(make_safe_line(text))}</code>"
            for name, text in lines.items()
            if text
        )
        said = escape(make_safe_line(str(self)))
        return f"<p><b>{said}</b>{shown}</p>{self.history._repr_html_()}"

    def __str__(self) -> str:
        names = ", ".join(dict.fromkeys(disabled.hook for disabled in self.disabled))
        hooks = "hooks" if "," in names else "hook"
        without = f"without the {hooks} {names}, which failed" if names else ""
        why = "; ".join(filter(None, (self.reason, without)))
        return f"{self.status} ({why})" if why else self.status


class Interrupted(SystemExit):
    """Raised when a signal has ended a run in order: a script exits with 128 + the signal."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.exit_code)
        self.outcome = outcome

    def __str__(self) -> str:
        return self.outcome.reason
