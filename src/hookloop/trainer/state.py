"""What a checkpoint holds: collected from the run, and restored to it.

model        parameters and buffers
optimizers   by name
schedules    by name of their optimizer
scaler       of half precision, if there is one
gradients    those not yet used by an update, where the user makes the updates
progress     the counters, and a validation that is due
data         the position in the training data; of each rank, where each has data of its own
val_data     how often each validation stream was read, and its own generators
metrics      those of this very iteration; its validation, which comes later, is in the index
metric_store every series, as it stands
machine      names of those that hooks declare as measuring the machine
hooks        the state of each, by name
rng          the random number generators of each rank
workers      those of the workers of each rank, if there are several ranks
buffers      of each rank, where they differ: batch norm sees another part of each batch
undeclared   what else the training has changed, by name; of each rank, where it differs
world        on how many ranks it was made
kinds        what the parts are, to notice when a resume is given others
arguments    the plain arguments of the Trainer, to notice the same
changes      what was changed on purpose at resumes, each with its iteration
run_id       of the run that saved it, whatever its directory is called
config       the effective config, with references to the environment
environment  checksums of the numbers among these, to notice when they have changed
versions     of hookloop and torch
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from hookloop.checkpoint.dtensors import is_sharded, spread
from hookloop.checkpoint.optimizers import numbered_state, optimizer_state
from hookloop.checkpoint.shape import has_same_form
from hookloop.checkpoint.shard_reading import load_into
from hookloop.checkpoint.storage import is_checkpoint_directory
from hookloop.data.randomness import Randomness
from hookloop.errors import CheckpointError
from hookloop.lr_schedule import Schedule
from hookloop.runs.policy import machine_names
from hookloop.runs.records import plain
from hookloop.secret import fingerprints
from hookloop.trainer.checkpoint_schema import check_optimizer, check_shapes, restoring
from hookloop.trainer.compared import compare, kinds_of
from hookloop.trainer.meant_changes import apply_changes, groups_as_built, record_changes
from hookloop.trainer.rank_state import (
    data_of_rank,
    randomness_of_rank,
    restore_buffers,
    restore_workers,
    state_of_ranks,
    undeclared_of_rank,
)
from hookloop.version import VERSION

if TYPE_CHECKING:
    from hookloop.core.hook import Hook
    from hookloop.core.run import Run
    from hookloop.requests import Wanted

State = MutableMapping[str, object]

_log = logging.getLogger("hookloop")


def gather(run: Run, scaler: torch.amp.GradScaler | None) -> State:
    """Collect the state of everything that has one; on many ranks all of them take part."""
    return {
        "model": run.model.state_dict(),
        "optimizers": {name: _state_of(run, one) for name, one in run.optimizers.items()},
        "schedules": {name: one.state_dict() for name, one in run.schedules.items()},
        "scaler": scaler.state_dict() if scaler is not None else None,
        "progress": {**run.progress.state_dict(), **_validation_due(run)},
        "data": run.train_data.state_dict() if run.train_data is not None else {},
        "val_data": {name: one.reading_state() for name, one in run.val_data.items()},
        "metrics": current_metrics(run),
        "metric_store": run.metrics.state_dict(),
        "machine": machine_names(name for hook in run.hooks for name in hook.writes),
        "hooks": {hook.name: hook.state_dict() for hook in run.hooks},
        **state_of_ranks(run),
        "side_randomness": run.side_randomness.state_dict(),
        "kinds": kinds_of(run),
        "arguments": run.arguments,
        "changes": run.changes,
        "run_id": run.id,
        "config": plain(run.config),  # A file that is read back holds plain types only.
        "environment": fingerprints(run.config),
        "versions": {"hookloop": VERSION, "torch": str(torch.__version__)},
    }


def _state_of(run: Run, optimizer: torch.optim.Optimizer) -> dict[str, object]:
    """Return the state of an optimizer; of shards by the names of the parameters."""
    if is_model_sharded(run.model):
        return optimizer_state(run.model, optimizer)
    return optimizer.state_dict()


def is_model_sharded(model: torch.nn.Module) -> bool:
    """Return whether each rank has parts of the parameters only."""
    return any(map(is_sharded, model.parameters()))


def restore(
    run: Run,
    checkpoint: Mapping[str, object],
    label: str,
    scaler: torch.amp.GradScaler | None,
    change: Sequence[str] | None = (),
    *,
    trains: bool = True,
) -> Randomness:
    """Restore the state of everything; return the random numbers, which the loop restores.

    Args:
        run: The run.
        checkpoint: Its state.
        label: Where that comes from, for messages.
        scaler: The loss scaler of half precision, if there is one.
        change: What differs on purpose, see `Resume`; None if the checkpoint is of this very run,
            and nothing has to be compared.
        trains: Whether a training continues from it.
    """
    checkpoint = _of_today(checkpoint)
    is_read = is_model_sharded(run.model) and is_checkpoint_directory(Path(label))
    # The whole file is checked first, so that most damaged files are rejected before anything
    # changes.
    check_shapes(checkpoint, label, has_data=run.train_data is not None)
    changes = compare(run, checkpoint, label, change) if change is not None else []
    undeclared = undeclared_of_rank(run, checkpoint)
    run.undeclared.add_groups(undeclared)
    built = groups_as_built(run.optimizers)
    if is_read:  # Each rank reads its own parts.
        load_into(run.model, run.optimizers, label, run.ranks.group)
    else:
        with restoring("model", label):
            restore_model(run.model, _part(checkpoint, "model", label), label)
        _restore_each("optimizers", run.optimizers, run, checkpoint, label)
    _restore_each("schedules", run.schedules, run, checkpoint, label)
    apply_changes(run, changes, built)
    if scaler is not None and checkpoint.get("scaler"):
        with restoring("scaler", label):
            scaler.load_state_dict(cast("dict[str, object]", checkpoint["scaler"]))
    progress = _part(checkpoint, "progress", label)
    run.progress.load_state_dict(progress)
    record_changes(run, checkpoint, changes)
    # A version that did not tell them apart made all of them with the training's random numbers.
    planned = progress.get("validation_planned", progress["validation_due"])
    _request_validation(run, progress["validation_due"])
    _request_validation(run, planned, planned=True)
    with restoring("position in the data", label):
        _restore_data(run, checkpoint, label)
    restore_workers(run, checkpoint, label)
    with restoring("metrics", label):
        run.metrics.load_state_dict(_part(checkpoint, "metric_store", label))
    # What hooks put before the next iteration begins belongs to that of the checkpoint.
    run.metrics.stamp = (run.progress.iter, run.progress.epoch)
    _restore_hooks(run, _part(checkpoint, "hooks", label), label)
    if "side_randomness" in checkpoint:  # Versions before 0.2 did not know of any.
        with restoring("random numbers of hooks", label):
            run.side_randomness.load_state_dict(_part(checkpoint, "side_randomness", label))
    with restoring("undeclared state", label):
        run.undeclared.load(undeclared, label, trains=trains)
    restore_buffers(run, checkpoint, label)
    return randomness_of_rank(run, checkpoint, label)


def _validation_due(run: Run) -> dict[str, object]:
    requests = run.requests
    due = {"validation_due": _plain_wanted(requests.validate)}
    if requests.planned != requests.validate:
        due["validation_planned"] = _plain_wanted(requests.planned)
    return due


def _plain_wanted(wanted: Wanted) -> object:
    return wanted if isinstance(wanted, bool) else sorted(wanted)


def _request_validation(run: Run, due: object, *, planned: bool = False) -> None:
    # The resumed run may have been given other validation data, or none.
    if due is True and run.val_data:
        run.validate(everywhere=True, planned=planned)
    elif names := [name for name in run.val_data if isinstance(due, list) and name in due]:
        run.validate(*names, everywhere=True, planned=planned)


def _restore_each(
    part: str,
    holders: Mapping[str, torch.optim.Optimizer] | Mapping[str, Schedule],
    run: Run,
    checkpoint: Mapping[str, object],
    label: str,
) -> None:
    states = _part(checkpoint, part, label)
    for name, holder in holders.items():
        with restoring(f"{part} '{name}'", label):
            # torch accepts many wrong states of an optimizer and fails only at the next update.
            state = states[name]
            if not isinstance(holder, Schedule):
                state = numbered_state(run.model, holder, cast("Mapping[str, object]", state))
                check_optimizer(holder, state)
            _load(holder, state, f"{label}: {part} '{name}'")


def _restore_data(run: Run, checkpoint: Mapping[str, object], label: str) -> None:
    own = data_of_rank(run, checkpoint, label)
    if own is not None and run.train_data is not None:
        if own:  # Otherwise a new epoch begins on another number of ranks.
            run.train_data.load_state_dict(own)
    elif run.train_data is not None:
        data = _part(checkpoint, "data", label)
        run.train_data.load_state_dict(data)
        if "order" not in data and not run.world.is_alone:
            # Of a run in one process: its orders continue from the numbers of that process.
            rng = cast("list[dict[str, object]]", checkpoint["rng"])
            run.train_data.order.now = Randomness(rng[0])
    # Streams may come and go between the runs: a new one starts from its beginning.
    for name, state in _part(checkpoint, "val_data", label).items():
        if name in run.val_data:
            run.val_data[name].load_reading_state(cast("Mapping[str, object]", state))


def _of_today(checkpoint: Mapping[str, object]) -> Mapping[str, object]:
    """Return a checkpoint with the parts that version 0.1 kept under another name."""
    series = checkpoint.get("metrics")
    if "metric_store" in checkpoint or not isinstance(series, Mapping):
        return checkpoint
    store = {name: _settled(one) for name, one in series.items() if isinstance(one, Mapping)}
    return {**checkpoint, "metric_store": store}


def _settled(series: Mapping[str, object]) -> dict[str, object]:
    """Return a series that counts as read: version 0.1 had other readers."""
    past, pending = series.get("past"), series.get("pending")
    came = past if isinstance(past, int) else 0
    came += len(pending) if isinstance(pending, list) else 0
    return {**series, "marks": {}, "start": came}


def current_metrics(run: Run) -> dict[str, float]:
    """Return the metrics of the iteration just completed; an earlier validation is left out."""
    latest = run.metrics.latest_at(run.progress.iter)
    # A checkpoint is saved before the validation of its iteration. The newest results in the store
    # may be those of an earlier one, and would be taken for its own.
    current = {n: v for n, v in latest.items() if not n.startswith(("val/", "test/"))}
    if run.progress.validated_at == run.progress.iter:
        current |= run.metrics.stream("val")
    return current


def restore_model(model: torch.nn.Module, weights: Mapping[str, object], label: str) -> None:
    """Restore the weights of the model, all of them."""
    if is_model_sharded(model):
        own = model.state_dict()
        weights = {
            name: spread(value, own[name]) if name in own else value  # type: ignore[arg-type]
            for name, value in weights.items()
        }
    try:
        model.load_state_dict(cast("dict[str, torch.Tensor]", weights))
    except RuntimeError as error:
        raise CheckpointError(f"'{label}' is of another model. {error}") from error


def _restore_hooks(run: Run, states: Mapping[str, object], label: str) -> None:
    for hook in run.hooks:
        if hook.name in states:
            _restore_hook(hook, cast("Mapping[str, object]", states[hook.name]), label)
    names = {hook.name for hook in run.hooks}
    # Most hooks have no state. Removing or adding one of those changes nothing worth a warning.
    lost = [name for name, state in states.items() if state and name not in names]
    fresh = [hook.name for hook in run.hooks if hook.name not in states and hook.state_dict()]
    if lost:
        _log.warning("The checkpoint has states of hooks that are gone: %s", ", ".join(lost))
    if fresh:
        _log.warning("The checkpoint has no state for the hooks: %s", ", ".join(fresh))


def _restore_hook(hook: Hook, state: Mapping[str, object], label: str) -> None:
    # Of our own hooks the form of the state is known, so a damaged file is found before it is used.
    if type(hook).__module__.startswith("hookloop.hooks."):
        part = f"state of the hook '{hook.name}'"
        if not has_same_form(state, hook.state_dict()):
            raise CheckpointError(f"'{label}' cannot be resumed: its {part} is not what it saves.")
        with restoring(part, label):
            hook.load_state_dict(state)
        return
    try:  # Of somebody else's hook the error is somebody else's.
        hook.load_state_dict(state)
    except Exception as error:
        error.add_note(
            f"while the hook '{hook.name}' ({type(hook).__name__}) restored its state from the "
            "checkpoint; under another name it would start without one"
        )
        raise


def _load(holder: torch.optim.Optimizer | Schedule, state: object, label: str) -> None:
    try:
        holder.load_state_dict(cast("dict[str, object]", state))
    except ValueError as error:
        raise CheckpointError(f"'{label}' does not fit: {error}") from error


def _part(checkpoint: Mapping[str, object], key: str, label: str) -> Mapping[str, object]:
    value = checkpoint.get(key)
    if not isinstance(value, Mapping):
        raise CheckpointError(
            f"'{label}' has no '{key}', so it cannot be resumed; its weights can be taken with "
            "load_from=."
        )
    return value
