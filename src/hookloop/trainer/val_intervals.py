"""When to validate: one interval for all validation data, or one for each stream."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from hookloop.errors import DataError, IntervalError, nearest
from hookloop.every import COUNTED, Every, Unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from hookloop.engine.progress import Progress
    from hookloop.engine.run import Run
    from hookloop.parallel.world import World
    from hookloop.requests import Wanted

Interval = Every | int | str


@dataclass
class Validation:
    """The times at which the loop validates.

    A run that reaches its end validates there too, unless it just did.

    Args:
        every: Interval in iterations, epochs or time.
        begin: After how much to validate for the first time, in the unit of ``every``.
        at_start: Whether to validate before the first iteration.
        enabled: Whether there is anything to validate on.

    Attributes:
        due: The streams that were found to be due; none of them means all.
    """

    every: Every
    begin: int = 0
    at_start: bool = False
    enabled: bool = True
    last_time: float = 0.0
    due: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.last_time = monotonic()

    def request(self, run: Run) -> None:
        """Request the validation whose time has come."""
        # Clocks differ from rank to rank, so only that of the first one counts.
        is_by_clock = self.every.unit == "seconds"
        if not is_by_clock or run.world.is_main:
            run.validate(*self.due, everywhere=not is_by_clock, planned=not is_by_clock)

    def note(self, progress: Progress, wanted: Wanted = True, *, is_planned: bool = True) -> None:
        """Record that a validation took place now, and whether a plan asked for it."""
        if is_planned:
            progress.asked_at = -1
        elif progress.validated_at != progress.iter:
            progress.asked_at = progress.iter
        progress.validated_at = progress.iter
        self.last_time = monotonic()

    def due_at_start(self, progress: Progress) -> bool:
        """Return whether to validate before the first iteration."""
        return self.enabled and self.at_start and progress.iter == 0 != progress.validated_at

    @property
    def units(self) -> set[Unit]:
        """The units that have to be counted for it."""
        return {self.every.unit} if self.enabled else set()

    @property
    def due_after_iter(self) -> Callable[[Progress], bool] | None:
        """What returns whether to validate after an iteration; None if that never happens."""
        if not self.enabled or self.every.unit == "epochs":
            return None
        if self.every.unit in COUNTED:
            return lambda progress: self.every.due(progress) and self._has_begun(progress)
        return self._due_by_time if self.every.unit == "seconds" else self._due_by_iter

    def _due_by_time(self, progress: Progress) -> bool:
        return monotonic() - self.last_time >= self.every.count

    def _due_by_iter(self, progress: Progress) -> bool:
        return progress.iter % self.every.count == 0 and progress.iter >= self.begin

    def _has_begun(self, progress: Progress) -> bool:
        return self.every.unit == "seconds" or self.every.done(progress) >= self.begin

    def due_after_epoch(self, progress: Progress) -> bool:
        """Return whether to validate after the epoch that was just completed."""
        return self.is_regular(progress) or self.due_at_end(progress)

    def is_regular(self, progress: Progress) -> bool:
        """Return whether the interval asks for a validation after this epoch, last or not."""
        return (
            self.enabled
            and self.every.unit == "epochs"
            and self.every.due(progress)
            and progress.epoch >= self.begin
            # One that was asked for does not replace it, or the random numbers would differ.
            and (progress.validated_at != progress.iter or progress.asked_at == progress.iter)
        )

    def due_at_end(self, progress: Progress) -> bool:
        """Return whether a run at its limit still lacks the validation of its last state."""
        return (
            self.enabled
            and progress.is_done
            and progress.validated_at != progress.iter
            and self._has_begun(progress)
        )


@dataclass
class StreamValidation(Validation):
    """The times at which each stream is validated.

    Streams that are due after the same iteration, or the same epoch, are one validation.

    Args:
        intervals: The interval of each stream.
    """

    intervals: Mapping[str, Every] = field(default_factory=dict)

    def __post_init__(self) -> None:
        now = monotonic()
        self._times = dict.fromkeys(self.intervals, now)

    def request(self, run: Run) -> None:
        """Request the validation whose time has come, of each stream for its own reason."""
        for is_planned in (True, False):
            names = [n for n in self.due if (self.intervals[n].unit != "seconds") is is_planned]
            if names:
                run.validate(*names, everywhere=True, planned=is_planned)

    def note(self, progress: Progress, wanted: Wanted = True, *, is_planned: bool = True) -> None:
        """Record that some streams were validated now."""
        super().note(progress, wanted, is_planned=is_planned)
        names: Collection[str] = wanted if isinstance(wanted, frozenset) else self.intervals
        for name in names:
            progress.validated_streams[name] = progress.iter
            self._times[name] = self.last_time

    @property
    def units(self) -> set[Unit]:
        """The units of all intervals."""
        return {every.unit for every in self.intervals.values()}

    @property
    def due_after_iter(self) -> Callable[[Progress], bool] | None:
        """What returns whether a stream is due after an iteration; None if that never happens."""
        by_iter = [every for every in self.intervals.values() if every.unit != "epochs"]
        return self._find_after_iter if by_iter else None

    def _find_after_iter(self, progress: Progress) -> bool:
        return self._find(
            name
            for name, every in self.intervals.items()
            if (every.unit == "seconds" and monotonic() - self._times[name] >= every.count)
            or (
                every.unit in ("iters", *COUNTED)
                and every.due(progress)
                and every.done(progress) >= self.begin
            )
        )

    def due_after_epoch(self, progress: Progress) -> bool:
        """Return whether a stream is due after the epoch that was just completed."""
        # What is validated only because the run ends comes later, by itself: it must not change
        # how a longer run would continue.
        return self.is_regular(progress)

    def is_regular(self, progress: Progress) -> bool:
        """Return whether an interval asks for a validation after this epoch, last or not."""
        return self._find(
            name
            for name, every in self.intervals.items()
            if every.unit == "epochs"
            and every.due(progress)
            and progress.epoch >= self.begin
            and (progress.asked_at == progress.iter or not self._is_done(name, progress))
        )

    def due_at_end(self, progress: Progress) -> bool:
        """Return whether a run at its limit still lacks a validation of its last state."""
        return progress.is_done and self._find(
            name
            for name, every in self.intervals.items()
            if (every.unit == "seconds" or every.done(progress) >= self.begin)
            and not self._is_done(name, progress)
        )

    def _is_done(self, name: str, progress: Progress) -> bool:
        return progress.validated_streams.get(name) == progress.iter

    def _find(self, names: Iterable[str]) -> bool:
        self.due = tuple(names)
        return bool(self.due)


def make_validation(
    every: Interval | Mapping[str, Interval],
    begin: int,
    at_start: bool,
    streams: Collection[str],
    world: World,
) -> Validation:
    """Return when to validate.

    Args:
        every: The interval, or that of each stream.
        begin: The first iteration or epoch after which to validate.
        at_start: Whether to validate before training.
        streams: The names of the validation streams.
        world: On how many ranks.
    """
    if not isinstance(every, Mapping):
        return Validation(Every.parse(every), begin, at_start, bool(streams))
    intervals = {str(name): _parse(str(name), one) for name, one in every.items()}
    _check_names(intervals, streams)
    if not world.is_alone and any(one.unit == "seconds" for one in intervals.values()):
        raise DataError(
            f"val_every= gives a stream an interval in time, which does not work on {world.size} "
            "ranks, whose clocks differ: write iterations or epochs, or one interval for all.",
            argument="val_every",
        )
    in_order = {name: intervals[name] for name in streams}
    first = next(iter(in_order.values()))
    return StreamValidation(first, begin, at_start, intervals=in_order)


def _parse(name: str, value: Interval) -> Every:
    try:
        return Every.parse(value)
    except IntervalError as error:
        raise DataError(f"val_every['{name}']: {error}", argument="val_every") from error


def _check_names(intervals: Mapping[str, Every], streams: Collection[str]) -> None:
    named = [name for name in streams if name]
    if not named:
        raise DataError(
            "val_every= has an interval for each stream, and val_data has no streams with names: "
            "give val_data={'small': ..., 'full': ...}, or one interval.",
            argument="val_every",
        )
    for name in intervals:
        if name not in named:
            raise DataError(
                f"val_every= has an interval for '{name}', which is not a stream of val_data."
                f"{nearest(name, named)} There are: {', '.join(named)}.",
                argument="val_every",
            )
    missing = [name for name in named if name not in intervals]
    if missing:
        raise DataError(
            f"val_every= has no interval for the stream {' and '.join(missing)}: give one, such as "
            f"{{'{missing[0]}': '1 epoch'}}.",
            argument="val_every",
        )
