"""Assemble the updates of a training from what the user brings: the only place that chooses.

`make_updates` builds them with the Trainer; `changed_by_hooks` asks the hooks for others;
`check_assembly` rejects, and changes nothing; `assemble` chooses, when a training begins, what
makes each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from hookloop.errors import ModelError
from hookloop.parallel.replicated import SLOTS, Replica
from hookloop.parallel.sharded import ShardedAverager, has_sparse_gradients
from hookloop.update.first_loss import watched
from hookloop.update.in_parts import InParts, InPartsOnRanks, Keep, check_parts
from hookloop.update.logical import LogicalReduction, check_logical, make_averager
from hookloop.update.loss_weights import counter_of
from hookloop.update.microbatches import is_sum
from hookloop.update.missing_losses import MissingLosses
from hookloop.update.objective import (
    forward_all,
    forward_inputs,
    forward_step,
    loss_from,
    loss_in_output,
)
from hookloop.update.reduction import Averager, Reduction
from hookloop.update.untrained import warn_of_untrained
from hookloop.update.update import Forward, LossOf, Make, Step, Update

if TYPE_CHECKING:
    from hookloop.data.group_sizes import GroupSizes
    from hookloop.engine.run import Run
    from hookloop.parallel.settings import Parallel

Loss = Callable[..., Tensor]


def make_updates(
    loss: Loss | None,
    step: Step | Update | Mapping[str, Step] | None,
    optimizers: Mapping[str, torch.optim.Optimizer],
    *,
    clip_norm: float | None = None,
    scaler: torch.amp.GradScaler | None = None,
    context: AbstractContextManager[None] | None = None,
) -> list[Update]:
    """Decide how the loss is computed, and return the updates of an iteration.

    Args:
        loss: A function of output and targets.
        step: A function of run and batch, several by optimizer, or an update of the user's own.
        optimizers: By name.
        clip_norm: Limit of the gradients' norm, if any.
        scaler: Scales the loss, with half precision.
        context: In which output and loss are computed, if in any.
    """
    if loss is not None and step is not None:
        raise ModelError(
            "loss= and step= are both given: a step computes the loss itself.", argument="loss"
        )
    # Written with `not`, so that NaN is rejected too.
    if clip_norm is not None and not clip_norm > 0:
        raise ModelError(
            f"clip_norm must be above 0, not {clip_norm}: None does not clip.",
            argument="clip_norm",
        )
    if scaler is not None:
        for optimizer in optimizers.values():
            # torch warns of a schedule that steps before its optimizer. A scaler may skip a step,
            # which is not a mistake.
            optimizer._opt_called = True  # type: ignore[attr-defined]
    updates = (
        [step] if isinstance(step, Update) else _choose(loss, step, optimizers, clip_norm, scaler)
    )
    for update in updates:
        update.compute_within(context)
    return updates


def _choose(
    loss: Loss | None,
    step: Step | Mapping[str, Step] | None,
    optimizers: Mapping[str, torch.optim.Optimizer],
    clip_norm: float | None,
    scaler: torch.amp.GradScaler | None,
) -> list[Update]:
    if isinstance(step, Mapping):
        _check_names(step, optimizers)
        missing = MissingLosses([*step])
        return [
            Update(
                name,
                forward_step(own_step, partial(missing.declare, name)),
                loss_in_output,
                [optimizers[name]],
                clip_norm=clip_norm,
                scaler=scaler,
                missing=missing,
            )
            for name, own_step in step.items()
        ]
    forward: Forward
    loss_of: LossOf
    missing = MissingLosses()
    if step is not None:
        forward, loss_of = forward_step(step, partial(missing.declare, "")), loss_in_output
    elif loss is None:  # The model returns it.
        forward, loss_of = forward_all, loss_in_output
    else:
        forward, loss_of = forward_inputs, loss_from(loss)
    return [
        Update(
            "",
            forward,
            loss_of,
            list(optimizers.values()),
            clip_norm=clip_norm,
            scaler=scaler,
            # Losses of microbatches that are sums are added up, those that are means are averaged.
            sums=is_sum(loss),
            counts=counter_of(loss) if step is None and loss is not None else None,
            may_skip=step is not None,
            missing=missing,
        )
    ]


def _check_names(step: Mapping[str, Step], optimizers: Mapping[str, torch.optim.Optimizer]) -> None:
    if unknown := set(step) - set(optimizers):
        raise ModelError(
            f"step= names {', '.join(sorted(unknown))}, but the optimizers are "
            f"{', '.join(optimizers) or 'none'}: the names must agree.",
            argument="step",
        )


def changed_by_hooks(run: Run, updates: Sequence[Update]) -> list[Update]:
    """Return the updates that the hooks make of those of the Trainer."""
    changed = list(updates)
    for hook in run.hooks:
        changed = [hook.change_update(run, update) for update in changed]
    return changed


def check_assembly(
    run: Run, updates: Sequence[Update], sizes: GroupSizes, parallel: Parallel
) -> None:
    """Reject updates that cannot be made as the hooks and arguments ask for.

    Raises:
        ModelError: If an argument of the Trainer would have no effect.
    """
    if run.world.logical:
        check_logical(run, updates, is_auto=sizes.is_auto, is_sharded=parallel.is_sharded)
    if sizes.is_auto:
        check_parts(run, updates, is_sharded=parallel.is_sharded)


class Makes(NamedTuple):
    """What makes the updates of an iteration, one after the other.

    Attributes:
        first: In the first iteration of this call, whose losses are looked at.
        later: In all that follow.
    """

    first: Sequence[Make]
    later: Sequence[Make]


def assemble(
    run: Run, updates: Sequence[Update], parallel: Parallel, keep: Keep | None = None
) -> Makes:
    """Return what makes the updates of an iteration.

    Until an update has had a gradient, a copy of it looks for one; its place in the list is then
    taken by one that does not look.

    Args:
        run: The run.
        updates: The updates.
        parallel: How the ranks work together.
        keep: Copies what is put back where an update is made again from smaller parts, when memory
            runs out; None if it is not made again.
    """
    first: list[Make] = []
    later: list[Make] = []
    for number, update in enumerate(updates):
        way = _way_of(run, update, parallel, keep, finds_unused=len(updates) > 1)
        looked_at, make = watched(run, update), way(update)
        if type(update) is not Update or run.progress.iter:
            later.append(make)
            first.append(make if looked_at is None else way(looked_at))
            continue
        done = partial(_go_on_with, later, number, make)
        later.append(way(update.checking_gradients(done)))
        first.append(way((looked_at or update).checking_gradients(done)))
    return Makes(first, later)


def _go_on_with(makes: list[Make], number: int, make: Make, run: Run) -> None:
    """Let an update that has had a gradient no longer look for one."""
    makes[number] = make
    if number == len(makes) - 1:  # By then each optimizer has had its update.
        warn_of_untrained(run)


def make_of(run: Run, update: Update, parallel: Parallel, *, finds_unused: bool = False) -> Make:
    """Return what makes an update, together with the other ranks if there are any.

    Args:
        run: The run.
        update: The update.
        parallel: How the ranks work together.
        finds_unused: Whether the loss may leave out parameters, as with several updates.
    """
    return _way_of(run, update, parallel, finds_unused=finds_unused)(update)


def _way_of(
    run: Run,
    update: Update,
    parallel: Parallel,
    keep: Keep | None = None,
    *,
    finds_unused: bool = False,
) -> Callable[[Update], Make]:
    """Choose how an update is made, and its copies.

    Args:
        run: The run.
        update: The update.
        parallel: How the ranks work together.
        keep: As for `assemble`.
        finds_unused: Whether the loss may leave out parameters, as with several updates.
    """
    if not run.world.cuts_batches or update.averages_itself:
        return lambda one: one.make if keep is None else InParts(one, keep).make
    averager: Averager
    slots = SLOTS if update.returns_loss else 2
    if run.world.logical:
        # To find them costs a look at a few numbers, for which only a device would be waited for.
        is_cheap = parallel.unused_parameters is None and run.device.type == "cpu"
        unused = is_cheap or _finds_unused(run, update, parallel, finds_unused)
        sums = make_averager(run, update, finds_unused=unused, slots=slots)
        return lambda one: LogicalReduction(one, sums, run).make
    if run._internals.shards is not None:
        averager = ShardedAverager(run._internals.shards, run._internals.ranks, update.parameters)
    else:
        averager = Replica(
            run.model,
            update.parameters,
            finds_unused=_finds_unused(run, update, parallel, finds_unused),
            slots=slots,
        )

    def on_ranks(one: Update) -> Make:
        reduction = Reduction(one, averager, run.world.data_size)
        if type(one).make is not Update.make:  # It makes the update from what it computes.
            one.average_with(reduction.compute_averaged)
            return one.make
        return reduction.make if keep is None else InPartsOnRanks(reduction, keep).make

    return on_ranks


def _finds_unused(run: Run, update: Update, parallel: Parallel, is_one_of_several: bool) -> bool:
    if parallel.unused_parameters is not None:
        return parallel.unused_parameters
    is_frozen = not all(parameter.requires_grad for parameter in update.parameters())
    unfreezes = any(hook.changes_what_trains for hook in run.hooks)
    # DDP's buckets cannot be warmed up for a sparse gradient. With this option they never change.
    is_sparse = has_sparse_gradients(run.model)
    return is_one_of_several or update.may_skip or is_frozen or unfreezes or is_sparse
