"""`Cycle`: the current epoch of emloop, shared by its hooks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from time import perf_counter
from typing import TYPE_CHECKING

from hookloop_dialects.emloop.batch_data import BatchData, merge
from hookloop_dialects.emloop.epoch_data import EpochData, Exchange
from hookloop_dialects.emloop.types import is_termination

if TYPE_CHECKING:
    from torch import Tensor

    from hookloop import Run

TRAIN, VALID = "train", "valid"


class Cycle:
    """One of emloop's epochs: a pass over the training data and one over every other stream.

    Attributes:
        computed: Batch, output and loss of each microbatch of the last iteration.
        stream: The stream of that iteration, by emloop's name.
        streams: The streams read in this epoch, in order.
        epoch_data: What hooks computed in this epoch, shared by all of them.
        profile: Lists of seconds by activity.
        is_over: Whether a hook ended the training within an epoch, so that no event follows.
        is_timed: Whether a hook needs the profile.
        closes_at: Where the epoch ends: ``"epoch"`` for `after_epoch`, ``"val"`` or ``"test"`` for
            the end of that evaluation.
        prefixes: The prefix of a stream's metrics in the metric store, by stream.
        exchange: What carries results between the metric store and ``epoch_data``.
    """

    def __init__(self) -> None:
        self.computed: list[tuple[object, object, Tensor | None]] = []
        self.is_timed = False
        self._batches: list[BatchData] | None = None
        self.stream = TRAIN
        self.streams: list[str] = []
        self.epoch_data = EpochData()
        self.prefixes: Mapping[str, str] = {}
        self.exchange = Exchange()
        self.profile: dict[str, list[float]] = {}
        self.is_over = False
        self.closes_at = "epoch"
        self._mark = 0.0
        self._hooks = 0.0

    def open(self) -> None:
        """Begin an epoch."""
        self.streams = []
        self.profile.clear()
        self._mark = perf_counter()

    def enter(self, stream: str) -> None:
        """Make a stream the current one."""
        self.stream = stream
        # A validation in the middle of an epoch makes the training stream current again.
        if stream not in self.streams:
            self.streams.append(stream)

    def close(
        self,
        aliases: Mapping[str, str] | None = None,
        known: Collection[str] = (),
        evaluated: Collection[str] = (),
    ) -> None:
        """Create the data of an epoch whose streams have all been read.

        Args:
            aliases: Further names of streams.
            known: All streams of the run.
            evaluated: The metrics that the engine computes in evaluations only.
        """
        # emloop lists the training stream first; sorted() keeps the order of the others.
        order = sorted(self.streams, key=lambda stream: stream != TRAIN)
        self.epoch_data = EpochData((stream, OrderedDict()) for stream in order)
        self.epoch_data.aliases, self.epoch_data.known = aliases or {}, known
        self.epoch_data.evaluated = evaluated
        self.exchange.begin()

    @property
    def batches(self) -> list[BatchData]:
        """The data for hooks, made when the first of them needs it."""
        if self._batches is None:
            self._batches = merge(self.computed)
        return self._batches

    def mark_read(self, stream: str) -> None:
        """Record that a batch was read and is about to be computed."""
        self.computed, self._batches = [], None
        if not self.is_timed:
            return
        now = perf_counter()
        # The hooks of the previous batch ran in this span as well. The clock's resolution can make
        # the rest slightly negative.
        self._note("read_batch", stream, max(0.0, now - self._mark - self._hooks))
        self.flush()
        self._mark = now

    def mark_computed(self, stream: str) -> None:
        """Record that a batch was computed and the hooks are next."""
        self.enter(stream)
        if not self.is_timed:
            return
        now = perf_counter()
        self._note("eval_batch", stream, now - self._mark)
        self._mark = now

    def mark_hooks(self, seconds: float) -> None:
        """Add the seconds that one hook took for a batch."""
        self._hooks += seconds

    def mark_epoch_hooks(self, seconds: float) -> None:
        """Add the seconds that one hook took for an epoch."""
        spent = self.profile.setdefault("after_epoch_hooks", [0.0])
        spent[0] += seconds  # One number per epoch, though the hooks are called one by one.

    def flush(self) -> None:
        """Record the seconds that the hooks took for the last batch."""
        if self._hooks:
            self._note("after_batch_hooks", self.stream, self._hooks)
            self._hooks = 0.0

    def _note(self, what: str, stream: str, seconds: float) -> None:
        self.profile.setdefault(f"{what}_{stream}", []).append(seconds)

    def end(self, run: Run, error: Exception) -> None:
        """Stop the run if a hook raised TrainingTerminated; raise any other exception again."""
        if not is_termination(error):
            raise error
        run.stop(str(error) or type(error).__name__)


def stream_name(name: str, phase: str = VALID) -> str:
    """Return emloop's name of a stream: the only one of a validation is ``valid``."""
    return {"val": VALID, "": phase}.get(name, name)
