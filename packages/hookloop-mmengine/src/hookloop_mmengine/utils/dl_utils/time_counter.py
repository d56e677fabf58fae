"""``mmengine.utils.dl_utils.TimeCounter``: the mean time of a function or a block of code."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar, ParamSpec, Self, TypeVar

import torch

from hookloop_mmengine.dist import is_main_process
from hookloop_mmengine.logging import print_log

P = ParamSpec("P")
R = TypeVar("R")


class TimeCounter:
    """Log how long a function takes, as a decorator, or a block of code.

    Of several processes only the first one measures. Counters of one tag are one object.

    Args:
        log_interval: After how many runs the mean is logged.
        warmup_interval: The first run that counts.
        with_sync: Whether to wait for the GPU.
        tag: The name in the log; by default that of the function.
        logger: The logger; None to print.
    """

    instance_dict: ClassVar[dict[str | None, TimeCounter]] = {}

    log_interval: int
    warmup_interval: int
    with_sync: bool
    tag: str | None
    logger: object
    _count: int
    _seconds: float
    _began: float

    def __new__(
        cls,
        log_interval: int = 1,
        warmup_interval: int = 1,
        with_sync: bool = True,
        tag: str | None = None,
        logger: object = None,
    ) -> Self:
        if warmup_interval < 1:
            raise AssertionError("warmup_interval should be 1 or more")
        if tag is not None and tag in cls.instance_dict:
            return cls.instance_dict[tag]  # type: ignore[return-value]
        counter = super().__new__(cls)
        cls.instance_dict[tag] = counter
        counter.log_interval, counter.warmup_interval = log_interval, warmup_interval
        counter.with_sync, counter.tag, counter.logger = with_sync, tag, logger
        counter._count, counter._seconds, counter._began = 0, 0.0, 0.0
        return counter

    def __call__(self, fn: Callable[P, R]) -> Callable[P, R]:
        """Return a function that is measured."""
        if self.tag is None:
            self.tag = fn.__name__

        @functools.wraps(fn)
        def measured(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return fn(*args, **kwargs)

        # MMEngine returns None in the other processes, which could not call it then.
        return measured if is_main_process() else fn

    def __enter__(self) -> None:
        if not is_main_process():
            return
        if self.tag is None:
            raise AssertionError("A block of code needs a tag, by which it is known in the log.")
        self._count += 1
        self._began = self._now()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if is_main_process():
            self.print_time(self._now() - self._began)

    def print_time(self, elapsed: float) -> None:
        """Count the seconds of a run, and log the mean if it is due."""
        if self._count < self.warmup_interval:
            return
        self._seconds += elapsed
        if self._count % self.log_interval == 0:
            mean = 1000 * self._seconds / (self._count - self.warmup_interval + 1)
            text = (
                f"[{self.tag}]-time per run averaged in the past {self._count} runs: {mean:.1f} ms"
            )
            print_log(text, self.logger)  # type: ignore[arg-type]

    def _now(self) -> float:
        if self.with_sync and torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter()
