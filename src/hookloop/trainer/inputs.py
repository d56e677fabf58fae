"""What the user brought, checked and brought to one form, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch.optim import LBFGS, Optimizer

from hookloop.core.run import Progress, Run
from hookloop.core.turn import Precision, Turn
from hookloop.data.source import Source
from hookloop.errors import DataError, HookError, ModelError, nearest
from hookloop.metrics.meters import Accumulating, Metric


def check_model(model: object) -> None:
    """Refuse what is no model."""
    if not isinstance(model, torch.nn.Module):
        raise ModelError(f"model= is {type(model).__name__}: it must be a torch.nn.Module.")


def place_model(model: torch.nn.Module, device: torch.device, *, compile: bool) -> None:
    """Move the model to its device and, if wanted, compile it in place."""
    check_model(model)
    model.to(device)
    if compile:
        model.compile()  # In place: torch.compile(model) would rename the keys of the state.


def named_optimizers(
    optimizer: Optimizer | Mapping[str, Optimizer] | None, model: torch.nn.Module
) -> dict[str, Optimizer]:
    """Bring one or several optimizers to a mapping, and check that they can train this model."""
    if optimizer is None:
        return {}
    by_name = dict(optimizer) if isinstance(optimizer, Mapping) else {"default": optimizer}
    trainable = {id(parameter) for parameter in model.parameters() if parameter.requires_grad}
    if not trainable:
        raise ModelError("model= has no trainable parameters: every requires_grad is False.")
    for name, one in by_name.items():
        if not isinstance(one, Optimizer):
            raise ModelError(f"optimizer '{name}' is {one!r}: it must be a torch optimizer.")
        held = {id(parameter) for group in one.param_groups for parameter in group["params"]}
        if not held & trainable:
            raise ModelError(
                f"The optimizer '{name}' holds no trainable parameter of this model: build it from "
                "model.parameters() of the very model that is trained."
            )
    return by_name


def make_scaler(precision: Precision, device: torch.device) -> torch.amp.GradScaler | None:
    """Return the loss scaler that half precision needs."""
    if precision not in ("fp32", "bf16", "fp16"):
        options = ("fp32", "bf16", "fp16")
        raise ModelError(
            f"precision={precision!r}: write fp32, bf16 or fp16.{nearest(str(precision), options)}"
        )
    return torch.amp.GradScaler(device.type) if precision == "fp16" else None


def make_progress(
    source: Source | None,
    max_epochs: int | None,
    max_iters: int | None,
    epoch_iters: int | None,
    accumulate: int,
) -> Progress:
    """Set the limits of the run, as far as they can be told beforehand."""
    limits = {"max_epochs": max_epochs, "max_iters": max_iters, "epoch_iters": epoch_iters}
    for name, limit in (limits | {"accumulate": accumulate}).items():
        if limit is not None and limit < 1:
            raise ModelError(f"{name} must be at least 1, not {limit}.")
    batches = source.num_batches if source is not None else None
    known = epoch_iters
    if known is None and batches is not None:
        known = -(-batches // accumulate)
    if source is not None and source.is_one_pass and max_epochs not in (None, 1):
        raise DataError(
            f"{source.name} is a {type(source.data).__name__} that can be read only once, but "
            f"max_epochs is {max_epochs}: give a list or a DataLoader, or max_iters."
        )
    return Progress(max_iters=max_iters, max_epochs=max_epochs, epoch_iters=known)


def check_trainable(run: Run) -> None:
    """Refuse a training that could not begin, would never end or would leave a schedule unused."""
    progress = run.progress
    written = {name for hook in run.hooks for name in hook.writes}
    if run.train_data is None:
        raise DataError("There is nothing to train on: give train_data=.")
    if not run.optimizers:
        raise ModelError("There is no optimizer: give optimizer=.")
    if progress.max_epochs is None and progress.max_iters is None and "stop" not in written:
        raise ModelError("The training would never end: give max_epochs= or max_iters=.")
    if run.schedules and "lr" not in written:
        raise HookError(
            "schedule= is given, but no hook steps it: keep the default hook 'schedule', or add "
            "StepSchedules()."
        )


def check_updates(run: Run) -> None:
    """Refuse an optimizer that the engine's update cannot step."""
    if any(isinstance(one, LBFGS) for one in run.optimizers.values()):
        raise ModelError(
            "LBFGS calls the model several times per step, which train() does not: make the "
            "updates yourself, in trainer.loop()."
        )


def check_own_updates(run: Run, turns: Iterable[Turn], accumulate: int) -> None:
    """Refuse what would have no effect where the user makes the updates."""
    for point in run.plan.points.values():
        if point.within and (owners := run.plan.calls(point.name).owners):
            raise HookError(
                f"The hook '{owners[0].name}' acts at {point.name}, within the update, which is "
                "yours in trainer.loop(): do its work there and leave it out, or call train()."
            )
    if accumulate != 1 or any(turn.clip_norm or turn.scaler for turn in turns):
        raise ModelError(
            "accumulate=, clip_norm= and precision='fp16' are parts of the update, which is yours "
            "in trainer.loop(): do them there, or call train()."
        )


def produced_names(
    turns: Iterable[Turn],
    metrics: Mapping[str, Metric],
    streams: Mapping[str, Mapping[str, Source]],
) -> set[str]:
    """List the metrics that the engine itself will write; patterns where only running it tells."""
    produced: set[str] = set()
    for turn in turns:
        if turn.clip_norm is not None:
            produced.add("train/grad_norm")
        names = {turn.loss_name, *metrics}
        names |= {
            f"{name}/*" for name, metric in metrics.items() if isinstance(metric, Accumulating)
        }
        if turn.returns_loss:  # It may return other numbers besides.
            names.add("*")
        produced |= {f"train/{name}" for name in names if name not in metrics}
        for phase, sources in streams.items():
            for stream in sources:
                prefix = f"{phase}/{stream}" if stream else phase
                produced |= {f"{prefix}/{name}" for name in names}
    return produced
