"""What the first update of a training leaves as it is, though it could be meant to be trained.

A parameter that was forgotten when the optimizer was built, or a learning rate of 0, is no error:
the training completes, and learns less than it was meant to. Looked at once, after the first
update that had a gradient.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.optim import Optimizer

from hookloop.beside import is_own
from hookloop.update.first_loss import reachable

if TYPE_CHECKING:
    from hookloop.engine.hook import Hook
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")

MOST = 3
"""How many parameters are named."""


def warn_of_untrained(run: Run) -> None:
    """Report parameters with a gradient that no optimizer has, and rates that stay 0."""
    if not run.world.is_main:
        return
    own = reachable([run._internals.loss_function, run._internals.step_function])
    # A step may train a module of its own with an optimizer of its own.
    optimizers = [*run.optimizers.values(), *(one for one in own if isinstance(one, Optimizer))]
    held = {id(p) for one in optimizers for group in one.param_groups for p in group["params"]}
    left = [
        name
        for name, parameter in _parameters(run)
        if parameter.requires_grad and parameter.grad is not None and id(parameter) not in held
    ]
    if left and not any(map(_may_train, run.hooks)):
        named = ", ".join(f"'{name}'" for name in left[:MOST])
        more = f" and {len(left) - MOST} more" if len(left) > MOST else ""
        _log.warning(
            "%s%s: the loss gives gradients to these parameters, and no optimizer of the Trainer "
            "has them, so that they stay as they are. Give them to an optimizer; or, if that is "
            "meant, set their requires_grad=False, which saves computing their gradients.",
            named,
            more,
        )
    for name, optimizer in run.optimizers.items():
        if not run.schedules and _has_no_rate(optimizer):
            which = "" if name == "default" else f" of '{name}'"
            _log.warning(
                "The learning rate%s is 0, and no schedule= raises it: nothing is trained.", which
            )


def _may_train(hook: Hook) -> bool:
    """Return whether a hook of the user's may give parameters to an optimizer later."""
    return hook.takes_part_in_training and not is_own(type(hook))


def _parameters(run: Run) -> Iterator[tuple[str, Tensor]]:
    """Yield the parameters of the model, and of modules that the loss or a step uses."""
    yield from run.model.named_parameters()
    seen = {id(one) for one in run.model.modules()}
    for one in reachable([run._internals.loss_function, run._internals.step_function]):
        if isinstance(one, nn.Module) and id(one) not in seen:
            seen.update(id(part) for part in one.modules())
            kind = type(one).__name__
            yield from ((f"{kind}.{name}", each) for name, each in one.named_parameters())


def _has_no_rate(optimizer: Optimizer) -> bool:
    rates = [group.get("lr") for group in optimizer.param_groups]
    return bool(rates) and all(rate is not None and float(rate) == 0 for rate in rates)
