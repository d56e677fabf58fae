"""`EmloopCompanion`: emloop's epochs, the zeroth included, on top of ours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from hookloop.dialects import (
    KNOWN_HOOKS,
    Adapter,
    Companion,
    GeneratorStates,
    Stream,
    plan_of,
)
from hookloop.errors import HookError
from hookloop_dialects.emloop.cycle import TRAIN, Cycle, stream_name
from hookloop_dialects.emloop.streams import Streams, check_streams

if TYPE_CHECKING:
    from hookloop import Hook, Run

_OURS = ("hookloop.", "hookloop_dialects.")


class EmloopCompanion(Companion):
    """Keep the data of the epoch, run the zeroth epoch and track the current stream.

    Attributes:
        zeroth: Whether every stream is evaluated once before the training, as emloop does.
        has_begun: Whether the training or an evaluation has begun.
        is_training: Whether a training is in progress, and not an evaluation outside of one.
    """

    name = "dialect:emloop"

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self.zeroth = True
        self._zeroth_done = False
        self.is_training = False
        self._opens = False
        self._before: GeneratorStates | None = None
        self._closed = 0  # The last epoch of the training whose hooks were called.
        self.has_begun = False

    # So that a run which is resumed repeats neither the zeroth epoch nor the end of an epoch, and
    # knows the streams that it has read.
    def state_dict(self) -> dict[str, object]:
        streams = list(self.cycle.streams)
        return {"zeroth_done": self._zeroth_done, "closed": self._closed, "streams": streams}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._zeroth_done = bool(state["zeroth_done"])
        # Checkpoints of earlier versions lack these two.
        self._closed = cast("int", state.get("closed", 0))
        self.cycle.streams = list(cast("list[str]", state.get("streams", ())))

    def before_run(self, run: Run) -> None:
        self.cycle.is_over = self.has_begun = self.is_training = False
        adapters = [hook for hook in run.hooks if isinstance(hook, Adapter)]
        # Two clock readings per batch are saved if nobody asks for the profile.
        self.cycle.is_timed = any("after_epoch_profile" in hook.__dict__ for hook in adapters)
        self.cycle.exchange.prepare(run)
        check_order(run.hooks, evaluated_names(plan_of(run).produced))

    def before_train(self, run: Run) -> None:
        self.is_training = self.has_begun = True
        check_streams(run)
        source = run.train_data
        if not self.zeroth or self._zeroth_done or run.progress.iter or source is None:
            return
        # Data that can be read only once is kept for the training.
        if source.is_one_pass or TRAIN in run.val_data:
            return
        self._zeroth_done = True
        # Shuffling and augmentation in the zeroth epoch draw random numbers. They are restored in
        # after_val, so that the training has the same bits as without it.
        self._before = GeneratorStates.now()
        self._before.order = source.order.now  # On many ranks all data draws its order from here.
        # A new Stream over the same data, so that the training's own position does not move.
        zeroth = Stream(source.data, source.name)
        if not run.world.is_alone:  # As all other sources of the run.
            zeroth.share_among(run.world.rank, run.world.size, source.order.now, is_training=False)
        run.val_data = {TRAIN: zeroth, **run.val_data}
        run.validate(everywhere=True, planned=True)  # The cycle of emloop asks for it.

    def before_train_epoch(self, run: Run) -> None:
        # The epoch opens with its first batch, since the validation requested above comes between.
        self._opens = True

    def before_val(self, run: Run) -> None:
        # The zeroth epoch, and an evaluation outside training, are epochs of their own.
        is_own = self._before is not None or not self.is_training
        # The validation after an epoch has its last streams. One in the middle of it does not.
        is_last = run.progress.stage == "closing" and self._closed != run.progress.epoch
        self._begin_evaluation("val" if is_own or is_last else "epoch", is_own=is_own)

    def before_test(self, run: Run) -> None:
        self._begin_evaluation("test", is_own=True)

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
            self._close(run)

    def after_test_epoch(self, run: Run, metrics: object) -> None:
        self._close(run)

    def after_val(self, run: Run) -> None:
        if self._before is not None:
            run.val_data = {name: data for name, data in run.val_data.items() if name != TRAIN}
            self._before.restore()
            if self._before.order is not None and run.train_data is not None:
                run.train_data.order.now = self._before.order
            self._before = None

    def after_epoch(self, run: Run) -> None:
        # Nowhere, if it was closed already, perhaps before a resume.
        self.cycle.closes_at = "" if self._closed == run.progress.epoch else "epoch"
        if self.cycle.closes_at:
            self._close(run)

    def _known(self, run: Run) -> set[str]:
        return {*Streams(run).prefixes, *Streams(run, is_test=True).prefixes}

    def _begin_evaluation(self, closes_at: str, *, is_own: bool) -> None:
        self.has_begun = True
        self.cycle.closes_at = closes_at
        if is_own:
            self.cycle.open()

    def _add_evaluated(self, run: Run, stream: str) -> None:
        self.cycle.computed.append((run.batch, run.output, run.loss))
        self.cycle.mark_computed(stream)

    def _close(self, run: Run) -> None:
        self.cycle.flush()
        streams = Streams(run, is_test=self.cycle.closes_at == "test")
        self.cycle.prefixes = streams.prefixes
        self.cycle.close(streams.aliases, self._known(run), evaluated_names(plan_of(run).produced))
        if self.is_training:
            self._closed = run.progress.epoch


def check_order(hooks: Sequence[Hook], produced: Iterable[str] = ()) -> None:
    """Reject a hook that reads from the epoch's data what no hook before it has written.

    emloop accepts it: the reader finds nothing in any epoch, or fails after the first.

    Args:
        hooks: The hooks in their order.
        produced: The metrics of evaluations, which are in the epoch's data as well.
    """
    metrics = set(produced)
    for index, reader in enumerate(hooks):
        wanted = getattr(getattr(reader, "foreign", None), "reads_epoch_data", None)
        if wanted is None:
            continue
        earlier = [_written(hook) for hook in hooks[:index]]
        # A hook that declares nothing may write anything, so it gets the benefit of doubt.
        if None in earlier:
            continue
        there = {name for names in earlier for name in names or ()}
        for writer in hooks[index + 1 :]:
            # An empty `wanted` means that the hook reads whatever is there.
            late = [name for name in _written(writer) or () if not wanted or name in wanted]
            if late and late[0] not in there:
                raise HookError(
                    f"The hook '{reader.name}' reads '{late[0]}' from the epoch's data before "
                    f"'{writer.name}' has written it: list '{writer.name}' before '{reader.name}'.",
                    reader.name,
                )
        missing = [name for name in wanted if name not in there | metrics]
        if missing and all(_written(hook) is not None for hook in hooks):
            raise HookError(
                f"The hook '{reader.name}' reads '{missing[0]}' from the epoch's data, which no "
                f"hook writes: list ComputeStats: {{variables: [{missing[0]}]}} before it.",
                reader.name,
            )


def evaluated_names(produced: Collection[str]) -> set[str]:
    """Return the metrics that the engine computes in evaluations only.

    >>> evaluated_names({"train/loss", "val/loss", "val/accuracy"})
    {'accuracy'}
    """
    parts = {
        part
        for name in produced
        if name.startswith(("val/", "test/"))
        for part in name.split("/")[1:]
    }
    return {part for part in parts if f"train/{part}" not in produced}


def _written(hook: Hook) -> tuple[str, ...] | None:
    """Return what a hook writes into the epoch's data; None if it does not declare it."""
    if not isinstance(hook, Adapter):
        if not hook.writes and not type(hook).__module__.startswith(_OURS):
            return None
        # `*/loss/mean` is the variable 'loss' of every stream. The numbers of default hooks, such
        # as times, do not get there.
        parts = [name.split("/") for name in hook.writes if hook.name not in KNOWN_HOOKS]
        return tuple(part[1] for part in parts if len(part) > 1)
    if hasattr(hook.foreign, "reads_epoch_data"):
        return ()
    declared = getattr(hook.foreign, "writes_epoch_data", None)
    # The epoch's data exists in after_epoch only.
    if declared is None and "after_epoch" not in hook.__dict__:
        return ()
    # Of our own hooks, those that write declare it.
    if declared is None and type(hook.foreign).__module__.startswith(f"{__package__}."):
        return ()
    return None if declared is None else tuple(declared)
