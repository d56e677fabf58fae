"""MMEngine's hooks at our mount points: keyword arguments, indices, generic methods, priorities.

A loop that counts iterations has one epoch: with ``max_iters`` alone, ``before_train_epoch`` is
called once at the start and ``after_train_epoch`` once at the end, and ``batch_idx`` is the number
of the iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Literal, cast

from hookloop import Hook, Priority
from hookloop.dialects import Adapter, Call, Catalogued, Method, Mount, base_of, overridden
from hookloop_mmengine.checkpoint_view import checkpoint_view
from hookloop_mmengine.dialect import MMENGINE
from hookloop_mmengine.dist.results import samples
from hookloop_mmengine.facade import RunnerFacade
from hookloop_mmengine.hooks.replaceable import Replaceable
from hookloop_mmengine.shared_results import share_metrics, without_phase

if TYPE_CHECKING:
    from hookloop import Run

Mode = Literal["train", "val", "test"]


class MMEngineAdapter(Adapter):
    """An MMEngine hook as a native hook.

    Args:
        foreign: The hook.
        without: Methods that are not called, because native hooks do their work.
    """

    facade: RunnerFacade

    def __init__(self, foreign: object, without: Sequence[str] = ()) -> None:
        # The base may be the real mmengine's Hook or ours; both do nothing by default.
        base = base_of(foreign, MMENGINE.bases)
        mounts = [mount for mount in MOUNTS if mount.method not in without]
        super().__init__(
            foreign, mounts, facade=RunnerFacade, base=base, priority=priority_of(foreign)
        )
        for mount, generic in GENERIC:
            if mount.method in without:
                continue
            own = overridden(foreign, mount.method, base)
            if own is None and overridden(foreign, generic, base) is not None:
                # The base class's method of this mode calls the generic method.
                self.attach(mount.point, mount.bind(getattr(foreign, mount.method), self))

    def bind_facade(self, run: Run) -> None:
        super().bind_facade(run)
        # The hub is shared by all hooks, so exactly one adapter saves it.
        if self.facade.keeper is None:
            self.facade.keeper = self.name
        if self.facade.keeper == self.name:
            self.facade.prepare_shared()

    def state_dict(self) -> dict[str, object]:
        state = super().state_dict()
        # A hub that nobody has asked for is not made for a checkpoint.
        if self.facade.keeper == self.name and "message_hub" in vars(self.facade):
            state["message_hub"] = self.facade.message_hub.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        # A copy: the caller's state keeps its message hub.
        own = dict(state)
        hub = own.pop("message_hub", None)
        if hub is not None:
            self.facade.message_hub.load_state_dict(cast("Mapping[str, object]", hub))
        super().load_state_dict(own)


def adapt(foreign: object) -> list[Hook]:
    """Return native hooks for an MMEngine hook; a catalogued one stands for several."""
    if not isinstance(foreign, Catalogued):
        return [MMEngineAdapter(foreign)]
    # An override would have no effect if the native hooks did the work.
    if isinstance(foreign, Replaceable) and foreign.acts_itself:
        return [MMEngineAdapter(foreign)]
    native_hooks = list(foreign.native_hooks())
    for hook in native_hooks:
        hook.priority = priority_of(foreign)
    wrapper = MMEngineAdapter(foreign, foreign.own if isinstance(foreign, Replaceable) else ())
    if wrapper.acts:  # A subclass has further methods.
        native_hooks.append(wrapper)
    return native_hooks


def priority_of(foreign: object) -> Priority | int | str:
    """Return the priority of a hook; MMEngine's enum has the same numbers as ours."""
    priority = getattr(foreign, "priority", Priority.NORMAL)
    return int(priority.value) if isinstance(priority, Enum) else cast("int | str", priority)


# --- how each method is called ------------------------------------------------------------------


def _simple(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        facade = adapter.facade
        facade.hook = adapter.name
        method(facade)

    return call


def _before_train_epoch(method: Method, adapter: Adapter) -> Call:
    call_method = _simple(method, adapter)
    is_first = True

    def begin(run: Run) -> None:
        nonlocal is_first
        is_first = True

    def call(run: Run) -> None:
        nonlocal is_first
        if is_first or not cast("RunnerFacade", adapter.facade).is_iter_based:
            call_method(run)
        is_first = False

    # Not at construction only: the same hook may train again in a second run.
    adapter.attach("before_train", begin)
    return call


def _after_train_epoch(method: Method, adapter: Adapter) -> Call:
    call_method = _simple(method, adapter)

    def call(run: Run) -> None:
        facade = cast("RunnerFacade", adapter.facade)
        if not facade.is_iter_based:
            # Our counter has moved already; MMEngine's moves after this sweep.
            facade.at_epoch = 1
            try:
                call_method(run)
            finally:
                facade.at_epoch = 0

    return call


def _after_iterations(method: Method, adapter: Adapter) -> Call:
    call_method = _simple(method, adapter)

    def call(run: Run) -> None:
        if cast("RunnerFacade", adapter.facade).is_iter_based:
            call_method(run)

    return call


def _before_train_iter(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        facade = adapter.facade
        facade.hook = adapter.name
        progress = run.progress
        index = progress.iter if progress.max_epochs is None else progress.iter_in_epoch
        method(facade, batch_idx=index, data_batch=run.batch)

    return call


def _after_train_iter(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        facade = cast("RunnerFacade", adapter.facade)
        facade.hook = adapter.name
        # As above: `runner.iter` is still the index of this iteration.
        facade.at_iter = 1
        progress = run.progress
        index = progress.iter if progress.max_epochs is None else progress.iter_in_epoch
        output = run.output
        # A native model may return anything; MMEngine's hooks rely on a dict with the loss.
        if not isinstance(output, dict) or "loss" not in output:
            output = {"loss": run.loss}
        try:
            method(facade, batch_idx=index - 1, data_batch=run.batch, outputs=output)
        finally:
            facade.at_iter = 0

    return call


def _counting(method: Method, adapter: Adapter, mode: Mode, *, with_outputs: bool) -> Call:
    """Call with the index of the batch, which starts at 0 in each evaluation."""
    index = 0

    def reset(run: Run) -> None:
        nonlocal index
        index = 0
        samples.clear()

    def before(run: Run) -> None:
        nonlocal index
        adapter.facade.hook = adapter.name
        method(adapter.facade, batch_idx=index, data_batch=run.batch)
        index += 1

    def after(run: Run) -> None:
        nonlocal index
        adapter.facade.hook = adapter.name
        if run.place is not None:  # A hook may collect the results of all processes.
            samples.add(run.place.batch, run.place.own)
        method(adapter.facade, batch_idx=index, data_batch=run.batch, outputs=run.output)
        index += 1

    adapter.attach(f"before_{mode}", reset)
    return after if with_outputs else before


def _evaluation_iter(mode: Mode, *, with_outputs: bool) -> Callable[[Method, Adapter], Call]:
    def bind(method: Method, adapter: Adapter) -> Call:
        return _counting(method, adapter, mode, with_outputs=with_outputs)

    return bind


def _with_metrics(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, metrics: Mapping[str, float]) -> None:
        facade = cast("RunnerFacade", adapter.facade)
        facade.hook = adapter.name
        # MMEngine's own evaluator names its metrics without the phase.
        given = dict(facade.raw_metrics or without_phase(metrics, run.phase))
        before = dict(given)
        method(facade, metrics=given)
        share_metrics(facade, before, given)

    return call


def _with_checkpoint(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, checkpoint: MutableMapping[str, object]) -> None:
        facade = cast("RunnerFacade", adapter.facade)
        facade.hook = adapter.name
        progress = run.progress
        # We save after the sweep; MMEngine saves inside it, where the counters have not moved.
        if progress.validated_at != progress.iter:
            facade.at_iter = int(progress.stage == "inside")
            # Inside an epoch `iter` is one behind, at its end `epoch`.
            facade.at_epoch = int(progress.stage == "closing")
        try:
            # Each hook gets a fresh view, so that it sees the changes of those before it.
            with checkpoint_view(facade, checkpoint) as view:
                method(facade, checkpoint=view)
        finally:
            facade.at_iter = facade.at_epoch = 0

    return call


def _with_loaded(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, checkpoint: MutableMapping[str, object]) -> None:
        facade = cast("RunnerFacade", adapter.facade)
        facade.hook = adapter.name
        facade._resume = True  # This point fires only on a resume.
        with checkpoint_view(facade, checkpoint) as view:
            method(facade, checkpoint=view)

    return call


_BATCH = ("batch_idx", "data_batch")
_OUTPUTS = (*_BATCH, "outputs")

_EPOCH_MOUNTS = (
    (Mount("before_train_epoch", "before_train_epoch", _before_train_epoch), "_before_epoch"),
    (Mount("after_train_epoch", "after_train_epoch", _after_train_epoch), "_after_epoch"),
    # A training by iterations has no end of an epoch, so the end of the training stands for it.
    (Mount("after_train", "after_train_epoch", _after_iterations), "_after_epoch"),
    (Mount("before_val_epoch", "before_val_epoch", _simple), "_before_epoch"),
    (Mount("before_test_epoch", "before_test_epoch", _simple), "_before_epoch"),
    *(
        (
            Mount(f"after_{mode}_epoch", f"after_{mode}_epoch", _with_metrics, 1, ("metrics",)),
            "_after_epoch",
        )
        for mode in ("val", "test")
    ),
)
_ITER_MOUNTS = (
    (
        Mount("before_train_iter", "before_train_iter", _before_train_iter, 1, _BATCH),
        "_before_iter",
    ),
    (Mount("after_train_iter", "after_train_iter", _after_train_iter, 1, _OUTPUTS), "_after_iter"),
    *(
        (
            Mount(
                f"before_{mode}_iter",
                f"before_{mode}_iter",
                _evaluation_iter(mode, with_outputs=False),
                1,
                _BATCH,
            ),
            "_before_iter",
        )
        for mode in cast("tuple[Mode, ...]", ("val", "test"))
    ),
    *(
        (
            Mount(
                f"after_{mode}_iter",
                f"after_{mode}_iter",
                _evaluation_iter(mode, with_outputs=True),
                1,
                _OUTPUTS,
            ),
            "_after_iter",
        )
        for mode in cast("tuple[Mode, ...]", ("val", "test"))
    ),
)
GENERIC = (*_EPOCH_MOUNTS, *_ITER_MOUNTS)
MOUNTS = (
    *(mount for mount, _ in GENERIC),
    *(
        Mount(point, point, _simple)
        for point in (
            "before_run", "before_train", "after_train", "before_val", "after_val",
            "before_test", "after_test", "after_run",
        )
    ),
    Mount("before_save_checkpoint", "before_save_checkpoint", _with_checkpoint, 1, ("checkpoint",)),
    Mount("after_load_checkpoint", "after_load_checkpoint", _with_loaded, 1, ("checkpoint",)),
)  # fmt: skip
