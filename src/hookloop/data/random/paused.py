"""Where the random numbers of a training stand while it pauses, and how they are put back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from hookloop.data.mixing.mixture import TrainingStream
from hookloop.data.random.states import GeneratorStates
from hookloop.data.stream import Stream
from hookloop.metrics.store import MetricStore


class Drawing(Protocol):
    """What is asked of a run: the parts that draw random numbers, or record."""

    train_data: TrainingStream | None
    metrics: MetricStore


class PausedRandomness:
    """Remembers where the random numbers of a run stand, those of the orders of data included.

    Args:
        run: The run.

    Attributes:
        paused_at: Where they stand while the training pauses: as a checkpoint has them, or as the
            training left them when it ended. None while it trains.
    """

    def __init__(self, run: Drawing) -> None:
        self._run = run
        self.paused_at: GeneratorStates | None = None

    def now(self) -> GeneratorStates:
        """Return where random numbers stand now."""
        now, stream = GeneratorStates.now(), self._run.train_data
        now.order = stream.order.now if stream is not None else None
        return now

    def restore(self, moment: GeneratorStates) -> None:
        """Continue from where they stood."""
        moment.restore()
        if moment.order is not None and self._run.train_data is not None:
            self._run.train_data.order.now = moment.order

    def pause(self) -> GeneratorStates:
        """Remember where they stand, for a training that is continued later.

        A validation that takes place only because the run ends must not change how a longer run
        would continue.
        """
        self.paused_at = self.paused_at or self.now()
        return self.paused_at

    def resume(self) -> bool:
        """Continue from where they paused; return whether they were."""
        kept, self.paused_at = self.paused_at, None
        if kept is not None:
            self.restore(kept)
        return kept is not None

    @contextmanager
    def without_trace(self, streams: Iterable[Stream]) -> Iterator[None]:
        """Let data be read that leaves the random numbers where they stand, and the data too.

        Args:
            streams: The data that may be read.
        """
        before, undo = self.now(), [stream.bookmark() for stream in streams]
        yield
        for put_back in undo:
            put_back()
        self.restore(before)  # Last: the others may draw.

    @contextmanager
    def repeating(self, is_repeated: bool) -> Iterator[None]:
        """Fire points that fired before the run was cut off, without a trace in the training.

        Numbers are recorded once, and whatever hooks draw now, the training continues with the
        random numbers of the checkpoint.
        """
        if not is_repeated:
            yield
            return
        before = self.now()
        with self._run.metrics.keep_existing():
            yield
        self.restore(before)
