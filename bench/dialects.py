# ruff: noqa: D102 - the hooks do nothing
"""Measure what an adapted hook costs more than a native one: ``python bench/dialects.py``.

Each hook has an empty method at its system's event of an iteration. Two things are measured: one
call at that point, which is what every further hook adds; and all points of one iteration, which
includes the companion that a dialect adds once to a run. The figures are medians of many
repetitions, minus those of a native hook with an empty method; the limit is 3 us per call.
"""

from __future__ import annotations

import sys
import tempfile
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import thread_time

import torch

from hookloop import Hook, Trainer
from hookloop.engine.plan import Calls, fire
from hookloop.engine.points import POINTS
from hookloop.engine.run import Run
from hookloop_callbacks.stand_ins.lightning.pytorch import Callback
from hookloop_callbacks.stand_ins.transformers import TrainerCallback
from hookloop_dialects.emloop import AbstractHook
from hookloop_dialects.imix import HookBase
from hookloop_dialects.pointrix import Hook as PointrixHook
from hookloop_dialects.vissl import ClassyHook
from hookloop_mmengine.hooks import Hook as MMEngineHook

LIMIT = 3.0  # Microseconds per call.
REPEATS, CALLS = 30, 2000
WITHIN = [point.name for point in POINTS if point.within]
ITERATION = ("before_train_iter", *WITHIN, "after_train_iter")


EVENTS = ("after_train_iter", "on_lightning_batch_end", "on_transformers_step_end")


class Native(Hook):
    """The hook that the others are compared with."""

    def after_train_iter(self, run: Run) -> None: ...


class Emloop(AbstractHook):
    """A hook of emloop."""

    def after_batch(self, stream_name: str, batch_data: object) -> None: ...


class Vissl(ClassyHook):
    """A hook of VISSL or ClassyVision."""

    on_start = ClassyHook._noop
    on_phase_start = ClassyHook._noop
    on_phase_end = ClassyHook._noop
    on_end = ClassyHook._noop

    def on_step(self, task: object) -> None: ...


class Imix(HookBase):
    """A hook of iMIX."""

    def after_train_iter(self) -> None: ...


class MMEngine(MMEngineHook):
    """A hook of MMEngine."""

    def after_train_iter(
        self, runner: object, batch_idx: int, data_batch: object = None, outputs: object = None
    ) -> None: ...


class Pointrix(PointrixHook):
    """A hook of Pointrix."""

    def after_train_iter(self, trainner: object) -> None: ...


class Lightning(Callback):
    """A callback of Lightning."""

    def on_train_batch_end(
        self, trainer: object, pl_module: object, outputs: object, batch: object, batch_idx: int
    ) -> None: ...


class Transformers(TrainerCallback):
    """A callback of Transformers."""

    def on_step_end(
        self, args: object, state: object, control: object, **kwargs: object
    ) -> None: ...


KINDS: dict[str, Callable[[], object]] = {
    "native": Native,
    "emloop": Emloop,
    "imix": Imix,
    "lightning": Lightning,
    "mmengine": MMEngine,
    "pointrix": Pointrix,
    "transformers": Transformers,
    "vissl": Vissl,
}


def prepare(hook: object, directory: Path) -> Run:
    """Return a run in the middle of an iteration, with one hook in it."""
    model = torch.nn.Linear(4, 1)
    batch = (torch.ones(8, 4), torch.zeros(8, 1))
    trainer = Trainer(
        model,
        train_data=[batch],
        loss=torch.nn.MSELoss(),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=2,
        hooks=[hook],  # type: ignore[list-item]
        default_hooks=False,
        run_dir=directory,
    )
    trainer.train()
    run = trainer.run
    fire(run._plan.before_run, run)
    fire(run._plan.before_train, run)
    fire(run._plan.before_train_epoch, run)
    for point in ITERATION:
        fire(run._plan.calls(point), run)
    return run


def time(run: Run, calls: Sequence[Calls]) -> float:
    """Return the microseconds that firing some calls takes."""

    def once() -> None:
        for point_calls in calls:
            fire(point_calls, run)

    # The time of this thread, which other programs disturb less than the clock.
    seconds = timeit.repeat(once, timer=thread_time, number=CALLS, repeat=REPEATS)
    return median(seconds) / CALLS * 1e6


def one_call(run: Run) -> float:
    """Time the hook alone, without the companion of its dialect."""
    # Some dialects call at a point of their own, which their companion fires.
    points = [point for point in run._plan.points if run._plan.calls(point)]
    singles = [call for point in points for call in run._plan.calls(point).singly()]
    busy = [
        call
        for call in singles
        if not call.hooks[0].name.startswith("dialect:") and call.point.name in EVENTS
    ]
    (single,) = busy
    return time(run, [single])


def iteration(run: Run) -> float:
    """Time all points of an iteration."""
    return time(run, [run._plan.calls(point) for point in ITERATION])


def main() -> int:
    """Print the table; return 1 if a dialect costs more than the limit."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: prepare(make(), Path(folder) / name) for name, make in KINDS.items()}
        single = {name: one_call(run) for name, run in runs.items()}
        whole = {name: iteration(run) for name, run in runs.items()}
    print(f"{'hook':<10}{'one call':>12}{'adds':>10}{'an iteration':>15}{'adds':>10}   us")
    worst = 0.0
    for name in KINDS:
        adds = single[name] - single["native"]
        worst = max(worst, adds, whole[name] - whole["native"])
        print(
            f"{name:<10}{single[name]:>12.2f}{adds:>10.2f}{whole[name]:>15.2f}"
            f"{whole[name] - whole['native']:>10.2f}"
        )
    print(f"an adapted hook adds at most {worst:.2f} us in total; the limit is {LIMIT:g} us")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
