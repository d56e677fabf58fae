"""`Cycle`: what emloop's hooks share from epoch to epoch."""

from __future__ import annotations

from collections import OrderedDict
from time import perf_counter
from typing import TYPE_CHECKING

from hookloop.dialects.emloop.batch_data import BatchData, merge
from hookloop.dialects.emloop.types import is_termination

if TYPE_CHECKING:
    from torch import Tensor

    from hookloop.core.run import Run

TRAIN, VALID = "train", "valid"


class Cycle:
    """One of emloop's epochs: a pass over the training data and one over every other stream.

    Attributes:
        computed: What was computed last: batch, output and loss of each microbatch and turn.
        stream: Of which stream that was, as emloop names it.
        streams: Those that were read in this epoch, in order.
        epoch_data: What hooks compute of the epoch, shared by all of them.
        profile: Seconds, by what they were spent on.
        is_over: Whether a hook ended the training in the middle of an epoch: no more events then.
        is_timed: Whether a hook wants to know where the time went.
        closes_at: ``"val"`` or ``"test"`` if the epoch ends with that evaluation: before the
            training, or outside of one.
    """

    def __init__(self) -> None:
        self.computed: list[tuple[object, object, Tensor | None]] = []
        self.is_timed = False
        self._batches: list[BatchData] | None = None
        self.stream = TRAIN
        self.streams: list[str] = []
        self.epoch_data: OrderedDict[str, OrderedDict[str, object]] = OrderedDict()
        self.profile: dict[str, list[float]] = {}
        self.is_over = False
        self.closes_at = ""
        self._mark = 0.0
        self._hooks = 0.0

    def open(self) -> None:
        """Begin an epoch."""
        self.streams = []
        self.profile.clear()
        self._mark = perf_counter()

    def enter(self, stream: str) -> None:
        """Note that a stream is being read."""
        self.stream = stream
        if stream not in self.streams:
            self.streams.append(stream)

    def close(self) -> None:
        """Prepare the data of an epoch whose streams were all read."""
        order = sorted(self.streams, key=lambda stream: stream != TRAIN)
        self.epoch_data = OrderedDict((stream, OrderedDict()) for stream in order)

    @property
    def batches(self) -> list[BatchData]:
        """The data for hooks, made when the first of them asks for it."""
        if self._batches is None:
            self._batches = merge(self.computed)
        return self._batches

    def mark_read(self, stream: str) -> None:
        """Note that a batch was read and is about to be computed."""
        self.computed, self._batches = [], None
        if not self.is_timed:
            return
        now = perf_counter()
        self._note("read_batch", stream, max(0.0, now - self._mark - self._hooks))
        self.flush()
        self._mark = now

    def mark_computed(self, stream: str) -> None:
        """Note that a batch was computed and the hooks are next."""
        self.enter(stream)
        if not self.is_timed:
            return
        now = perf_counter()
        self._note("eval_batch", stream, now - self._mark)
        self._mark = now

    def mark_hooks(self, seconds: float) -> None:
        """Add the time that one hook took for a batch."""
        self._hooks += seconds

    def mark_epoch_hooks(self, seconds: float) -> None:
        """Add the time that one hook took for an epoch."""
        spent = self.profile.setdefault("after_epoch_hooks", [0.0])
        spent[0] += seconds

    def flush(self) -> None:
        """Write down what the hooks took for the last batch."""
        if self._hooks:
            self._note("after_batch_hooks", self.stream, self._hooks)
            self._hooks = 0.0

    def _note(self, what: str, stream: str, seconds: float) -> None:
        self.profile.setdefault(f"{what}_{stream}", []).append(seconds)

    def end(self, run: Run, error: Exception) -> None:
        """End the training because a hook asked for it; any other exception is raised again."""
        if not is_termination(error):
            raise error
        run.stop(str(error) or type(error).__name__)


def stream_name(name: str, phase: str = VALID) -> str:
    """Name a stream as emloop does: the only one of a validation is ``valid``."""
    return {"val": VALID, "": phase}.get(name, name)
