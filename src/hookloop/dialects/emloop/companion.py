"""`EmloopCompanion`: emloop's epochs, the zeroth included, on top of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hookloop.data.randomness import Randomness
from hookloop.data.source import Source
from hookloop.dialects.adapter import Adapter
from hookloop.dialects.companion import Companion
from hookloop.dialects.emloop.cycle import TRAIN, Cycle, stream_name
from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop.core.run import Run


class EmloopCompanion(Companion):
    """Keep the data of the epoch, run the zeroth epoch and track the current stream.

    Attributes:
        zeroth: Whether every stream is evaluated once before the training, as emloop does.
        has_begun: Whether the training or an evaluation has begun.
    """

    name = "dialect:emloop"

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self.zeroth = True
        self._zeroth_done = False
        self._is_training = False
        self._opens = False
        self._before: Randomness | None = None
        self.has_begun = False

    # So that a run which is resumed before its first iteration does not repeat the zeroth epoch.
    def state_dict(self) -> dict[str, object]:
        return {"zeroth_done": self._zeroth_done}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._zeroth_done = bool(state["zeroth_done"])

    def before_run(self, run: Run) -> None:
        self.cycle.is_over = self.has_begun = self._is_training = False
        adapters = [hook for hook in run.hooks if isinstance(hook, Adapter)]
        # Two clock readings per batch are saved if nobody asks for the profile.
        self.cycle.is_timed = any("after_epoch_profile" in hook.__dict__ for hook in adapters)
        check_order(adapters)

    def before_train(self, run: Run) -> None:
        self._is_training = self.has_begun = True
        source = run.train_data
        if not self.zeroth or self._zeroth_done or run.progress.iter or source is None:
            return
        # Data that can be read only once is kept for the training.
        if source.is_one_pass or TRAIN in run.val_data:
            return
        self._zeroth_done = True
        # Shuffling and augmentation in the zeroth epoch draw random numbers. They are restored in
        # after_val, so that the training has the same bits as without it.
        self._before = Randomness.now()
        # A new Source over the same data, so that the training's own position does not move.
        run.val_data = {TRAIN: Source(source.data, source.name), **run.val_data}
        run.validate(everywhere=True)

    def before_train_epoch(self, run: Run) -> None:
        # The epoch opens with its first batch, since the validation requested above comes between.
        self._opens = True

    def before_val(self, run: Run) -> None:
        # The zeroth epoch, and an evaluation outside training, are epochs of their own. Any other
        # validation belongs to the epoch of the training and ends with it.
        closes = self._before is not None or not self._is_training
        self._begin_evaluation("val" if closes else "")

    def before_test(self, run: Run) -> None:
        self._begin_evaluation("test")

    def before_train_iter(self, run: Run) -> None:
        if self._opens:
            self.cycle.open()
            self._opens = False
        self.cycle.mark_read(TRAIN)

    def before_val_iter(self, run: Run) -> None:
        self.cycle.mark_read(stream_name(run.stream))

    def before_test_iter(self, run: Run) -> None:
        self.cycle.mark_read(stream_name(run.stream, "test"))

    # Per microbatch: at after_train_iter only the last one would be left.
    def after_backward(self, run: Run) -> None:
        self.cycle.computed.append((run.batch, run.output, run.loss))

    def after_train_iter(self, run: Run) -> None:
        self.cycle.mark_computed(TRAIN)

    def after_val_iter(self, run: Run) -> None:
        self._add_evaluated(run, stream_name(run.stream))

    def after_test_iter(self, run: Run) -> None:
        self._add_evaluated(run, stream_name(run.stream, "test"))

    def after_val_epoch(self, run: Run, metrics: object) -> None:
        if self.cycle.closes_at == "val":
            self._close()

    def after_test_epoch(self, run: Run, metrics: object) -> None:
        self._close()

    def after_val(self, run: Run) -> None:
        if self._before is not None:
            run.val_data = {name: data for name, data in run.val_data.items() if name != TRAIN}
            self._before.restore()
            self._before = None

    def after_epoch(self, run: Run) -> None:
        self._close()

    def _begin_evaluation(self, closes_at: str) -> None:
        self.has_begun = True
        self.cycle.closes_at = closes_at
        if closes_at:
            self.cycle.open()

    def _add_evaluated(self, run: Run, stream: str) -> None:
        self.cycle.computed.append((run.batch, run.output, run.loss))
        self.cycle.mark_computed(stream)

    def _close(self) -> None:
        self.cycle.flush()
        self.cycle.close()


def check_order(adapters: list[Adapter]) -> None:
    """Reject a hook that reads from the epoch's data before the hook that writes it.

    emloop accepts it: the reader finds nothing in any epoch, or fails after the first.
    """
    for index, reader in enumerate(adapters):
        wanted = getattr(reader.foreign, "reads_epoch_data", None)
        if wanted is None:
            continue
        earlier = [_written(adapter) for adapter in adapters[:index]]
        for writer in adapters[index + 1 :]:
            # An empty `wanted` means that the hook reads whatever is there.
            late = [name for name in _written(writer) or () if not wanted or name in wanted]
            # An earlier hook that declares nothing may write it, so it gets the benefit of doubt.
            if late and not any(names is None or late[0] in names for names in earlier):
                raise HookError(
                    f"The hook '{reader.name}' reads '{late[0]}' from the epoch's data before "
                    f"'{writer.name}' has written it: list '{writer.name}' before '{reader.name}'."
                )


def _written(adapter: Adapter) -> tuple[str, ...] | None:
    """Return what a hook writes into the epoch's data; None if it does not declare it."""
    if hasattr(adapter.foreign, "reads_epoch_data"):
        return ()
    declared = getattr(adapter.foreign, "writes_epoch_data", None)
    # The epoch's data exists in after_epoch only.
    if declared is None and "after_epoch" not in adapter.__dict__:
        return ()
    return None if declared is None else tuple(declared)
