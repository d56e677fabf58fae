"""What a hook finds in the run at each mount point, as a hook that looks has found it."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hookloop import Hook, Run
from hookloop.engine.points import POINTS
from hookloop.hooks import SaveCheckpoint
from hookloop.testing import tiny_trainer

LOOKED_AT = ("batch", "output", "loss")
"""Fields of the run that belong to a microbatch."""

NONE, STALE, THERE = "", "last", "yes"


class Look(Hook):
    """Notes what is there at each point."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, set[str]]] = {point.name: {} for point in POINTS}
        self._before: list[object] = []  # Kept, so that no other object gets the same identity.
        self._is_inside = False

    def look(self, run: Run, point: str) -> None:
        """Note what is there at a point."""
        if point.startswith("before_") and point.endswith("_iter"):
            self._is_inside = True
        for name in LOOKED_AT:
            value = getattr(run, name)
            is_new = not any(value is one for one in self._before)
            filled = NONE if value is None else THERE if self._is_inside and is_new else STALE
            self._note(point, name, filled)
        held = any(one.grad is not None for one in run.model.parameters())
        self._note(point, "gradients", THERE if held else NONE)
        self._note(point, "phase", run.phase)
        if point.startswith("after_") and point.endswith("_iter"):
            self._is_inside = False
            # What is still the same at the next point is of the iteration before.
            self._before += [getattr(run, name) for name in LOOKED_AT]

    def _note(self, point: str, name: str, value: str) -> None:
        self.found[point].setdefault(name, set()).add(value)


def _looking(point: str) -> Any:  # noqa: ANN401 - a method of any mount point
    def method(self: Look, run: Run, *args: object) -> None:
        self.look(run, point)

    return method


for _point in POINTS:
    setattr(Look, _point.name, _looking(_point.name))


class Ask(Hook):
    """Makes the requests that lead to the points that no plain training reaches."""

    def __init__(self) -> None:
        self._is_back = False

    def after_train_iter(self, run: Run) -> None:
        """Act after an iteration."""
        if run.progress.iter == 5 and not self._is_back:
            self._is_back = True
            run.rewind(3, reason="to look", everywhere=True)
        if run.progress.iter == 8:
            run.stop("to look", everywhere=True)


class Fail(Hook):
    """Ends a training with an error, between two iterations."""

    def after_train_iter(self, run: Run) -> None:
        """Act after an iteration."""
        raise ValueError("to look")


def find() -> dict[str, dict[str, set[str]]]:
    """Train, resume, fail, test and predict, and return what was found at each point."""
    look = Look()
    logging.disable(logging.WARNING)
    with TemporaryDirectory() as folder:
        home = Path(folder) / "run"
        asking = [look, Ask(), SaveCheckpoint(every="3 iters")]
        tiny_trainer(*asking, run_dir=home, max_epochs=9).train()
        trainer = tiny_trainer(look, SaveCheckpoint(), run_dir=home, resume=True, max_epochs=9)
        trainer.train(max_iters=10)
        trainer.test()
        trainer.predict("test_data")
        with contextlib.suppress(ValueError):
            tiny_trainer(look, Fail(), run_dir=Path(folder) / "failed").train()
    logging.disable(logging.NOTSET)
    return look.found


def rows() -> str:
    """Return the rows of the table."""
    lines = []
    for point, found in find().items():
        cells = [_words(found.get(name, set())) for name in ("phase", *LOOKED_AT, "gradients")]
        lines.append(f"| `{point}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _words(values: set[str]) -> str:
    order = ["train", "val", "test", "predict", THERE, STALE]
    listed = [one for one in order if one in values]
    may_be_missing = NONE in values and len(values) > 1
    return (" or ".join(listed) if {*listed} & {THERE, STALE} else ", ".join(listed)) + (
        ", or none" if may_be_missing else ""
    )
