"""What the user brings, checked and normalized before anything is trained."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import cast

import torch
from torch.optim import LBFGS, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from hookloop.data.group_sizes import Accumulate, GroupSizes
from hookloop.data.limits import DataLimits, Limit, TrainData, check_limit
from hookloop.data.mixing.mixture import Mixture, TrainingStream
from hookloop.data.mixing.weights import Mix
from hookloop.data.position.measures import length_of
from hookloop.data.stream import Stream
from hookloop.engine.hook import SCHEDULES
from hookloop.engine.progress import Progress
from hookloop.engine.run import Run
from hookloop.errors import DataError, HookError, HookloopError, ModelError
from hookloop.lr_schedule import Schedule
from hookloop.metrics.meters import Accumulating, Metric
from hookloop.trainer.compilation import Compile, compile_model
from hookloop.trainer.preparation import Cast, Prepare, Prepared
from hookloop.trainer.settings import spread
from hookloop.update.update import Update

_log = logging.getLogger("hookloop")


def check_model(model: object) -> None:
    """Reject what is not a model."""
    if not isinstance(model, torch.nn.Module):
        raise ModelError(
            f"model= is {type(model).__name__}: it must be a torch.nn.Module.", argument="model"
        )
    _check_model_is_bare(model)


def _check_model_is_bare(model: torch.nn.Module) -> None:
    """Reject a model that the user has wrapped for many ranks."""
    kinds = {"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"}
    if type(model).__name__ in kinds:
        raise ModelError(
            f"model= is wrapped in {type(model).__name__}: give the model itself. hookloop "
            "averages the gradients of all ranks, as parallel= says.",
            argument="model",
        )


def place_model(
    model: torch.nn.Module,
    device: torch.device,
    compile: Compile | None,
    prepare: Prepare = None,
    precision: str = "fp32",
) -> Prepared:
    """Move the model to its device, prepare it and, if asked for, compile it; all in place."""
    check_model(model)
    # In place: optimizers that were built before keep their parameters.
    model.to(device)
    prepared = Prepared.of(model, prepare)
    if precision != "fp32" and any(isinstance(step, Cast) for step in prepared.steps):
        raise ModelError(
            f"precision='{precision}' keeps float32 parameters, and Cast in prepare= does not: "
            "leave one out.",
            argument="precision",
        )
    if compile and prepared.compilation is not None:
        raise ModelError(
            "The model is compiled by compile= and by Compile in prepare=: leave one out.",
            argument="compile",
        )
    compilation = compile_model(model, compile)
    return prepared if compilation is None else replace(prepared, compilation=compilation)


def named_optimizers(
    optimizer: Optimizer | Mapping[str, Optimizer] | None, model: torch.nn.Module
) -> dict[str, Optimizer]:
    """Return optimizers by name, and check that they can train this model."""
    if optimizer is None:
        return {}
    by_name = dict(optimizer) if isinstance(optimizer, Mapping) else {"default": optimizer}
    # By identity, because == between tensors compares their elements.
    trainable = {id(parameter) for parameter in model.parameters() if parameter.requires_grad}
    if not trainable:
        raise ModelError(
            "model= has no trainable parameters: every requires_grad is False.", argument="model"
        )
    for name, held_by in by_name.items():
        if not isinstance(held_by, Optimizer):
            raise ModelError(
                f"optimizer '{name}' is {held_by!r}: it must be a torch optimizer.",
                argument="optimizer",
            )
        _check_rates(name, held_by)
        held = {id(parameter) for group in held_by.param_groups for parameter in group["params"]}
        # One in common is enough: an optimizer may train a part of the model.
        if not held & trainable:
            raise ModelError(
                f"The optimizer '{name}' holds no trainable parameter of this model: build it from "
                "model.parameters() of the model that is trained."
            )
    return by_name


def _check_rates(name: str, optimizer: Optimizer) -> None:
    """Reject a rate with which the loss would rise; torch checks only what a class is given."""
    for group in optimizer.param_groups:
        rate = group.get("lr", 0.0)
        if not rate >= 0:  # Written with `not`, so that NaN is rejected too.
            raise ModelError(
                f"The optimizer '{name}' has the learning rate {float(rate):g}: it must be 0 or "
                "more. To make a loss larger, use maximize=True.",
                argument="optimizer",
            )


def named_schedules(
    schedule: Schedule | LRScheduler | Mapping[str, Schedule | LRScheduler] | None,
) -> dict[str, Schedule]:
    """Bring every way of giving schedules to one: by name, each with its interval."""
    if schedule is None:
        return {}
    by_name = schedule if isinstance(schedule, Mapping) else {"default": schedule}
    return {
        str(name): one if isinstance(one, Schedule) else Schedule(one)
        for name, one in by_name.items()
    }


def whole(name: str, value: object) -> int:
    """Return a whole number, NumPy's too, as an int."""
    # True is an int to Python, but max_epochs=True is a mistake.
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ModelError(
            f"{name}={value!r}: it must be a whole number, such as {name}=3.", argument=name
        )
    return int(value)


def check_count(name: str, value: object) -> int:
    """Return a whole number above 0; reject anything else."""
    count = whole(name, value)
    if count < 1:
        raise ModelError(f"{name} must be at least 1, not {value}.", argument=name)
    return count


def make_progress(
    source: TrainingStream | None,
    max_epochs: int | None,
    max_iters: int | None,
    epoch_iters: int | None,
    accumulate: Accumulate,
) -> Progress:
    """Set the limits of the run, as far as they are known beforehand."""
    limits = {"max_epochs": max_epochs, "max_iters": max_iters, "epoch_iters": epoch_iters}
    sizes = GroupSizes(accumulate)
    max_epochs, max_iters, epoch_iters = (
        None if limit is None else check_count(name, limit) for name, limit in limits.items()
    )
    # A generator would give nothing in the second epoch, and the run would end early.
    if source is not None and source.is_one_pass and max_epochs not in (None, 1):
        raise DataError(
            f"{source.name} is a {type(source.data).__name__} that can be read only once, but "
            f"max_epochs is {max_epochs}: give a list or a DataLoader, or max_iters.",
            argument="train_data",
        )
    progress = Progress(max_iters=max_iters, max_epochs=max_epochs, epoch_iters=epoch_iters)

    def note_length(batches: int | None) -> None:
        length = None if batches is None else sizes.iters(batches, progress.iter, progress.epoch)
        progress.epoch_iters = length

    def iters_of_epochs(epochs: int) -> int | None:
        batches = None if source is None else source.num_batches
        return None if batches is None else sizes.iters_of_epochs(batches, epochs)

    if source is not None:
        source.follow(progress, note_length if epoch_iters is None else None)
        if epoch_iters is None:
            note_length(source.num_batches)
    if epoch_iters is None and not sizes.is_constant:
        progress.iters_of_epochs = iters_of_epochs
    return progress


def expected_progress(arguments: Mapping[str, object], data: object) -> Progress:
    """Return the limits of a training before its Trainer is made; nothing of the data is read.

    Args:
        arguments: Those of the Trainer that are plain values.
        data: The training data, if there is any.
    """
    given_by_path = spread(arguments)
    limit = given_by_path.get("data.limit")
    overfit = cast("int | None", given_by_path.get("data.overfit"))
    if limit is not None:
        check_limit(limit)
    if overfit is not None and data is not None and not isinstance(data, Mapping):
        length = length_of(data)
        data = [None] * (overfit if length is None else min(overfit, length))
    limits, given = DataLimits(cast("Limit | None", limit), None), cast("TrainData | None", data)
    accumulate = cast("Accumulate", arguments.get("accumulate", 1))
    wanted = cast("int | None", given_by_path.get("data.epoch_iters"))
    epoch_iters = limits.epoch_iters(wanted, given, accumulate)
    # A source for its length only: the Trainer makes the one that is read.
    mix = cast("Mix | None", given_by_path.get("data.mix"))
    source = limits.train(given, accumulate, epoch_iters, mix=mix)
    max_epochs, max_iters = (
        cast("int | None", arguments.get(name)) for name in ("max_epochs", "max_iters")
    )
    return make_progress(source, max_epochs, max_iters, epoch_iters, accumulate)


def check_mixture(source: TrainingStream | None, loss: object) -> None:
    """Reject a mixture that the loss cannot use."""
    if not isinstance(source, Mixture) or not source.way.is_zipped:
        return
    way, names = source.way.name, ", ".join(source.streams)
    if loss is not None:
        raise ModelError(
            f"loss= needs batches of (inputs, targets), and mix='{way}' gives mappings from the "
            f"streams ({names}) to a batch of each: write step=, which computes the loss of all.",
            argument="loss",
        )


def note_streams(error: Exception, run: Run) -> None:
    """Add to an error of an evaluation that the step gets another form of batch in training."""
    source, batch = run.train_data, run.batch
    if isinstance(error, HookloopError) or not isinstance(source, Mixture):
        return
    if not source.way.is_zipped:
        return
    phase, streams = f"{run.phase}_data", source.streams
    there = [name for name in streams if name in batch] if isinstance(batch, Mapping) else []
    missing = ", ".join(name for name in streams if name not in there)
    here = f"a batch of one stream: tell them apart by run.phase, or give {phase} as a mapping of"
    if there:
        here = f"one without {missing}: tell them apart by run.phase, or let {phase} have"
    if missing:
        error.add_note(
            "In training, the step gets a mapping with a batch of each stream "
            f"({', '.join(streams)}). Here it gets {here} such streams and Data(val_mix='zip')."
        )


def set_limits(progress: Progress, max_epochs: int | None, max_iters: int | None) -> None:
    """Set other limits for the rest of a training; reject limits that leave nothing to do."""
    given = {"max_epochs": max_epochs, "max_iters": max_iters}
    wanted = {name: limit for name, limit in given.items() if limit is not None}
    # On a copy, so that limits that are rejected change nothing.
    later = replace(progress)
    for name, limit in wanted.items():
        setattr(later, name, check_count(name, limit))
    if later.is_done:
        by_iters = later.max_iters is not None and later.iter >= later.max_iters
        name, done = ("max_iters", later.iter) if by_iters else ("max_epochs", later.epoch)
        raise ModelError(
            f"{name}={getattr(later, name)} is reached, so there is nothing left to train: "
            f"train({name}=...) with a number above {done} continues the training."
        )
    progress.max_epochs, progress.max_iters = later.max_epochs, later.max_iters


def check_trainable(run: Run) -> None:
    """Reject a training that could not begin, or would leave a schedule unused."""
    if run.train_data is None:
        raise DataError("There is nothing to train on: give train_data=.")
    if not run.optimizers:
        raise ModelError("There is no optimizer: give optimizer=.")
    for name, schedule in run.schedules.items():
        # A scheduler of another kind need not have an optimizer, and then cannot be checked.
        driven = getattr(schedule.scheduler, "optimizer", None)
        if isinstance(driven, Optimizer) and driven not in run.optimizers.values():
            which = "" if name == "default" else f" '{name}'"
            raise ModelError(
                f"The schedule{which} drives an optimizer that is not in this run, so it would "
                "change nothing: build it from the optimizer that is given as optimizer=."
            )
    if run.schedules and not any(SCHEDULES in hook.owns for hook in run.hooks):
        raise HookError(
            "schedule= is given, but no hook steps it: keep the default hook 'schedule', add "
            "StepSchedules(), or set owns = ('schedules',) in the class of your own hook that "
            "steps it."
        )


def check_ends(run: Run) -> None:
    """Reject a training without a limit and without a hook that is sure to end it."""
    progress = run.progress
    if progress.max_epochs is not None or progress.max_iters is not None:
        return
    if not any(hook.ends_training for hook in run.hooks):
        raise ModelError(
            "The training would never end: give max_epochs= or max_iters=, or a hook that ends it, "
            "such as StopAfter or StopOnPlateau. A hook of your own that calls run.stop() declares "
            "ends_training = True."
        )


def check_validations(run: Run, *, begin: int = 0) -> None:
    """Reject validation data that the first of several validations would use up."""
    every, progress = run._internals.val_every, run.progress
    limits = {"epochs": progress.max_epochs, "iters": progress.total_iters}
    limit = None if every is None else limits.get(every.unit)
    if every is None or limit is None or begin or limit <= every.count:
        return
    for source in run.val_data.values():
        if source.is_one_pass and source.limit is None:
            raise DataError(
                f"{source.name} is a {type(source.data).__name__} that can be read only once, and "
                f"it is validated on every {every}: give a DataLoader or a list.",
                argument="val_data",
            )


def warn_of_metrics(run: Run) -> None:
    """Report metrics that nothing computes: the training does not, for what it costs."""
    own = run._internals
    if own.meters and run.world.is_main and not (run.val_data or own.test_data):
        _log.warning(
            "metrics= is computed in validations and tests, not in the training, and there is no "
            "data for either: give val_data=, or return such numbers from a step=."
        )


def check_updates(run: Run, updates: Iterable[Update]) -> None:
    """Reject an optimizer that the engine's update cannot step."""
    for update in updates:
        kind = type(update)
        is_own = kind.make is not Update.make or kind.apply is not Update.apply
        if any(isinstance(one, LBFGS) for one in update.optimizers) and not is_own:
            raise ModelError(
                "LBFGS calls the model several times per step, which train() does not: make the "
                "updates yourself, in trainer.loop() or in the make() of an Update of your own."
            )


def check_own_updates(run: Run, updates: Iterable[Update], sizes: GroupSizes) -> None:
    """Reject what would have no effect where the user makes the updates."""
    if run.world.cuts_batches:
        ranks = run.world.logical or run.world.data_size
        raise ModelError(
            f"trainer.loop() cannot average the gradients of {ranks} ranks, because the "
            "backward is yours: write step=, or an Update, and call train()."
        )
    for point in run._plan.points.values():
        if point.within and (owners := run._plan.calls(point.name).hooks):
            raise HookError(
                f"The hook '{owners[0].name}' acts at {point.name}, within the update, which is "
                "yours in trainer.loop(): do its work there and leave it out, or call train()."
            )
    if not sizes.is_one or any(update.clip_norm or update.scaler for update in updates):
        raise ModelError(
            "accumulate=, clip_norm= and precision='fp16' are parts of the update, which is yours "
            "in trainer.loop(): do them there, or call train()."
        )


def produced_names(
    updates: Iterable[Update],
    metrics: Mapping[str, Metric],
    streams: Mapping[str, Mapping[str, Stream]],
) -> set[str]:
    """List the metrics that the engine itself will write; patterns where only a run can show."""
    produced: set[str] = set()
    for update in updates:
        if update.clip_norm is not None:
            produced.add("train/grad_norm")
        names = {update.loss_name, *filter(None, metrics)}
        names |= {
            f"{name}/*" if name else "*"  # Without a name, it uses names of its own.
            for name, metric in metrics.items()
            if isinstance(metric, Accumulating)
        }
        if update.returns_loss:  # It may return other numbers besides.
            names.add("*")
        # Metrics are computed in evaluations only.
        produced |= {f"train/{name}" for name in names if name not in metrics}
        for phase, sources in streams.items():
            for stream in sources:
                prefix = f"{phase}/{stream}" if stream else phase
                produced |= {f"{prefix}/{name}" for name in names}
    return produced
