"""``vissl.utils.profiler``: torch's profiler with VISSL's files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from torch import profiler


class Profiler:
    """torch's profiler; it writes each of its files once.

    Args:
        profile: torch's own.
        sort_by: The columns by which tables are written, each to a file of its own.
    """

    def __init__(self, profile: Any, sort_by: tuple[str, ...]) -> None:  # noqa: ANN401 - of torch
        self.profiler = profile
        self.started = False
        self.dumped = False
        self._sort_by = sort_by

    def __enter__(self) -> None:
        self.profiler.__enter__()
        self.started = True

    def __exit__(self, *error: object) -> None:
        if self.started:
            self.started = False
            self.profiler.__exit__(*error)

    def step(self) -> None:
        """Tell the profiler that an iteration has ended."""
        if self.started:
            self.profiler.step()

    def dump(self, folder: str, rank: int) -> None:
        """Write ``<column>_rank<r>.txt`` and ``profiler_chrome_trace_rank<r>.json``."""
        if self.dumped:
            return
        self.dumped = True
        averages = self.profiler.key_averages()
        for column in self._sort_by:
            path = Path(folder) / f"{column}_rank{rank}.txt"
            path.write_text(averages.table(sort_by=column) + "\n", encoding="utf-8")
        trace = Path(folder) / f"profiler_chrome_trace_rank{rank}.json"
        self.profiler.export_chrome_trace(str(trace))


def create_runtime_profiler(
    enabled: bool,
    use_cpu: bool,
    use_cuda: bool,
    wait: int,
    warmup: int,
    active: int,
    legacy_profiler: bool = False,
) -> Any:  # noqa: ANN401 - a Profiler, or a context that does nothing
    """Return a profiler of some iterations.

    Args:
        enabled: Whether to profile; otherwise a context that does nothing is returned.
        use_cpu: Whether to profile the CPU.
        use_cuda: Whether to profile the GPU, where there is one.
        wait: Iterations before it begins.
        warmup: Iterations that it runs without recording.
        active: Iterations to record.
        legacy_profiler: Ignored: torch has one profiler.
    """
    if not enabled:
        return null_context()
    kinds = {profiler.ProfilerActivity.CPU: use_cpu, profiler.ProfilerActivity.CUDA: use_cuda}
    activities = [kind for kind, wanted in kinds.items() if wanted]
    supported = profiler.supported_activities()  # type: ignore[no-untyped-call]
    usable = [kind for kind in activities if kind in supported]
    # Once: a second round would be cut off, and torch may crash when it is.
    schedule = profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=1)
    columns = ("cpu_time", "cuda_time", "cuda_memory_usage")
    return Profiler(profiler.profile(activities=usable or None, schedule=schedule), columns)


def null_context() -> AbstractContextManager[None]:
    """Return a context that does nothing."""
    return nullcontext()


@contextmanager
def record_function(name: str, with_tag: str = "##") -> Iterator[None]:
    """Mark a ``with`` block in a profile."""
    with profiler.record_function(f"{with_tag} {name} {with_tag}" if with_tag else name):
        yield
