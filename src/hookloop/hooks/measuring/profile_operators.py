"""`ProfileOperators`: show how long each operator of an iteration takes."""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from torch.profiler import ProfilerActivity, profile, schedule

from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError, nearest
from hookloop.runs.files import drafted, make_folder, write_text

if TYPE_CHECKING:
    from hookloop.engine.run import Run

Detail = Literal["shapes", "memory", "stack", "flops"]
DETAILS = ("shapes", "memory", "stack", "flops")
_log = logging.getLogger("hookloop")


class ProfileOperators(Hook):
    """Profile some iterations with torch's profiler, and write traces and a table.

    For each repetition, ``profile/`` in the run directory gets ``trace_<n>.json``, which Perfetto
    (ui.perfetto.dev) and chrome://tracing open, and ``operators_<n>.txt``, a table of the operators
    that took longest. Only the main process profiles.

    Args:
        wait: Iterations before each repetition that are not profiled.
        warmup: Iterations after these in which the profiler runs and discards what it records.
        active: Iterations that are profiled.
        repeat: How many times to do this.
        first_epoch: Whether to profile the whole first epoch instead.
        details: What else to record: ``"shapes"``, ``"memory"``, ``"stack"``, ``"flops"``.
        tensorboard: Whether to write the trace to ``profile/tensorboard`` too, for its plugin.
        rows: Number of rows in the table.

    Example:
        >>> ProfileOperators(wait=10, active=5, repeat=2).iterations
        32
    """

    ranks = "first"
    priority = Priority.VERY_LOW  # So that the work of other hooks is part of the iteration.
    draws_random_numbers = False

    def __init__(  # noqa: PLR0913 - the profiler's own
        self,
        wait: int = 1,
        warmup: int = 1,
        active: int = 3,
        repeat: int = 1,
        *,
        first_epoch: bool = False,
        details: Sequence[Detail] = (),
        tensorboard: bool = False,
        rows: int = 25,
    ) -> None:
        if wait < 0 or warmup < 0 or min(active, repeat, rows) < 1:
            raise HookError(
                "ProfileOperators: wait and warmup must be 0 or more, active, repeat and rows at "
                "least 1."
            )
        for detail in details:
            if detail not in DETAILS:
                raise HookError(
                    f"ProfileOperators: no detail '{detail}'.{nearest(detail, DETAILS)} "
                    f"There are: {', '.join(DETAILS)}."
                )
        self.iterations = (wait + warmup + active) * repeat
        self._cycle = wait + warmup + active
        self._active = active
        self.first_epoch = first_epoch
        self.details = tuple(details)
        self.tensorboard = tensorboard
        self.rows = rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # About warmup=0, which was asked for.
            self._schedule = schedule(wait=wait, warmup=warmup, active=active, repeat=1)
        self._profiler: profile | None = None
        self._steps = 0
        self._written = 0

    def before_train(self, run: Run) -> None:
        if not self._written:  # A second train() does not profile again.
            self._steps = 0
            total, unseen = run.progress.total_iters, self._cycle - self._active
            if not self.first_epoch and total is not None and total - run.progress.iter <= unseen:
                _log.warning(
                    "ProfileOperators will write nothing: wait and warmup are %d iterations, the "
                    "run has %d.", unseen, total - run.progress.iter,
                )  # fmt: skip
            make_folder(run.dir / "profile", run.dir)
            self._start(run)

    def after_train_iter(self, run: Run) -> None:
        if self._profiler is None or self.first_epoch:
            return
        self._profiler.step()
        self._steps += 1
        if self._steps % self._cycle == 0:
            self._stop()
            if self._steps < self.iterations:
                self._start(run)

    def after_train_epoch(self, run: Run) -> None:
        if self.first_epoch:
            self._stop()

    def after_run(self, run: Run) -> None:
        self._stop()

    def _start(self, run: Run) -> None:
        # One profiler per repetition: a single one would clear its events between repetitions.
        activities = [ProfilerActivity.CPU]
        if run.device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        self._profiler = profile(
            activities=activities,
            schedule=None if self.first_epoch else self._schedule,
            on_trace_ready=lambda profiler: self._write(run, profiler),
            record_shapes="shapes" in self.details,
            profile_memory="memory" in self.details,
            with_stack="stack" in self.details,
            with_flops="flops" in self.details,
        )
        self._profiler.start()

    def _stop(self) -> None:
        if self._profiler is not None:
            # Forgotten first: if writing fails in stop(), after_run must not stop it again.
            profiler, self._profiler = self._profiler, None
            profiler.stop()

    def _write(self, run: Run, profiler: profile) -> None:
        self._written += 1
        folder = run.dir / "profile"
        trace = folder / f"trace_{self._written}.json"
        with drafted(trace) as draft:
            profiler.export_chrome_trace(str(draft))
        by = "self_cuda_time_total" if run.device.type == "cuda" else "self_cpu_time_total"
        table = profiler.key_averages().table(sort_by=by, row_limit=self.rows)
        write_text(folder / f"operators_{self._written}.txt", table)
        if self.tensorboard:
            make_folder(folder / "tensorboard", run.dir)
            # The plugin finds files by this ending and shows the part before it as the worker.
            plugin_name = f"rank{run.world.rank}.{self._written}.pt.trace.json"
            with drafted(folder / "tensorboard" / plugin_name) as draft:
                shutil.copyfile(trace, draft)
