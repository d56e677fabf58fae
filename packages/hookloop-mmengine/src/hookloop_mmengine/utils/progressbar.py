"""``mmengine.utils.ProgressBar``: the progress of some work, on one line."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.pool import Pool
from time import perf_counter
from typing import TextIO, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")


class ProgressBar:
    """Show the number of finished tasks on a line of the terminal.

    Args:
        task_num: The number of tasks; 0 if it is not known.
        bar_width: The width of the bar in characters.
        start: Whether the clock starts now.
        file: The stream to write to.
    """

    def __init__(
        self,
        task_num: int = 0,
        bar_width: int = 50,
        start: bool = True,
        file: TextIO | None = None,
    ) -> None:
        self.task_num = task_num
        self.bar_width = bar_width
        self.completed = 0
        self.file = file or sys.stdout
        if start:
            self.start()

    def start(self) -> None:
        """Start the clock."""
        self._since = perf_counter()
        self._show()

    def update(self, num_tasks: int = 1) -> None:
        """Count some tasks as finished."""
        self.completed += num_tasks
        self._show()

    def _show(self) -> None:
        elapsed = perf_counter() - self._since
        text = f"completed: {self.completed}, elapsed: {elapsed:.0f}s"
        if self.task_num > 0:
            done = int(self.bar_width * min(self.completed / self.task_num, 1))
            bar = ">" * done + " " * (self.bar_width - done)
            text = f"[{bar}] {self.completed}/{self.task_num}, elapsed: {elapsed:.0f}s"
        # A carriage return, so that the line is overwritten in place.
        self.file.write(f"\r{text}")
        self.file.flush()


Tasks = Sequence[T] | tuple[Iterable[T], int]


def track_progress(
    func: Callable[..., R],
    tasks: Tasks[T],
    bar_width: int = 50,
    file: TextIO | None = None,
    **kwargs: object,
) -> list[R]:
    """Call a function for each task, with a bar, and return the results.

    Args:
        func: The function.
        tasks: The tasks; a tuple holds an iterable of tasks and their number.
        bar_width: The width of the bar in characters.
        file: The stream to write to.
        kwargs: More arguments of the function.
    """
    return [func(task, **kwargs) for task in track_iter_progress(tasks, bar_width, file)]


def track_iter_progress(
    tasks: Tasks[T], bar_width: int = 50, file: TextIO | None = None
) -> Iterator[T]:
    """Yield the tasks, with a bar."""
    listed, count = _counted(tasks)
    bar = ProgressBar(count, bar_width, file=file)
    for task in listed:
        yield task
        bar.update()
    bar.file.write("\n")


def track_parallel_progress(  # noqa: PLR0913, PLR0917 - MMEngine's signature
    func: Callable[[T], R],
    tasks: Tasks[T],
    nproc: int,
    initializer: Callable[..., object] | None = None,
    initargs: tuple[object, ...] | None = None,
    bar_width: int = 50,
    chunksize: int = 1,
    skip_first: bool = False,
    keep_order: bool = True,
    file: TextIO | None = None,
) -> list[R]:
    """Call a function for each task in several processes, with a bar, and return the results.

    Args:
        func: The function.
        tasks: The tasks; a tuple holds an iterable of tasks and their number.
        nproc: The number of processes.
        initializer: Called in each process at its start.
        initargs: The arguments of the initializer.
        bar_width: The width of the bar in characters.
        chunksize: How many tasks a process gets at once.
        skip_first: Whether the first chunk of each process is left out of the bar.
        keep_order: Whether the results are in the order of the tasks.
        file: The stream to write to.
    """
    listed, count = _counted(tasks)
    skipped = nproc * chunksize if skip_first else 0
    bar = ProgressBar(count - skipped, bar_width, not skip_first, file)
    results: list[R] = []
    with init_pool(nproc, initializer, initargs) as pool:
        mapped = (pool.imap if keep_order else pool.imap_unordered)(func, listed, chunksize)
        for result in mapped:
            results.append(result)
            if len(results) > skipped:
                bar.update()
            elif len(results) == skipped:
                bar.start()
    bar.file.write("\n")
    return results


def init_pool(
    process_num: int,
    initializer: Callable[..., object] | None = None,
    initargs: tuple[object, ...] | None = None,
) -> Pool:
    """Start some processes."""
    if initargs is not None and not isinstance(initargs, tuple):
        raise TypeError('"initargs" must be a tuple')
    return multiprocessing.get_context().Pool(process_num, initializer, initargs or ())


def _counted(tasks: Tasks[T]) -> tuple[Iterable[T], int]:
    if isinstance(tasks, tuple):
        listed, count = tasks
        if not (isinstance(listed, Iterable) and isinstance(count, int)):
            raise AssertionError(
                "A tuple of tasks holds an iterable and the number of its entries."
            )
        return listed, count
    if not isinstance(tasks, Sequence):
        raise TypeError(
            f'"tasks" must be a tuple object or a sequence object, but got {type(tasks)}'
        )
    return cast("Sequence[T]", tasks), len(tasks)
