"""Replicas of a model: each rank has all of it, and torch's DDP averages the gradients.

DDP averages what passes through its forward, and only that. A step may call any method of the
model, so the module that DDP wraps is not the model but a small carrier, whose forward runs
everything that an update computes. The model itself stays what it is.

Numbers of an update, such as its loss, travel with the gradients: the carrier has one more
parameter, whose gradient they become. So each rank knows the loss of the global batch without
another exchange.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from hookloop.errors import ModelError

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel

SLOTS = 16
"""How many numbers travel with the gradients."""

OWN = ("carried", "unused")
"""Parameters that the carrier has of its own."""

WARM_UP = 2
"""Passes after which DDP has found the order of its buckets, in which it sums from then on."""


class Replica:
    """The gradients of one update, averaged over all ranks.

    Args:
        model: The user's model.
        parameters: Those that the update's optimizers step.
        finds_unused: Whether parameters may be left out of a loss. Otherwise it is an error, and
            an iteration costs less.
    """

    is_scaled = True
    """Numbers that travel with the gradients are scaled like them."""

    def __init__(
        self, model: torch.nn.Module, parameters: Iterable[Tensor], *, finds_unused: bool
    ) -> None:
        self._carrier = _Carrier(model, parameters, has_unused=finds_unused)
        self._finds_unused = finds_unused
        with _all_trainable(self._carrier.trained):
            self._ddp = _wrap(self._carrier, finds_unused=finds_unused)
        if not finds_unused:
            self._warm_up()

    @property
    def carried(self) -> Tensor:
        """The mean over all ranks of what was given to `carry`; read it after the last backward."""
        return cast("Tensor", self._carrier.carried.grad)

    def start(self, *, synchronizes: bool) -> None:
        """Begin a microbatch; gradients are averaged in the backward of the last one only."""
        self._ddp.require_backward_grad_sync = synchronizes

    def clear(self) -> None:
        """Drop the numbers of the last update."""
        self._carrier.carried.grad = None

    def forward(self, compute: Callable[[], Tensor | None]) -> Tensor:
        """Compute a loss; its backward averages the gradients."""
        return cast("Tensor", self._ddp(compute))

    def carry(self, loss: Tensor | None, numbers: Sequence[Tensor]) -> Tensor:
        """Add numbers to a loss without changing its value; their sums are in `carried`.

        Without a loss the rank only takes part, so that the others do not wait for it.
        """
        carried = self._carrier.carried
        if loss is None:
            return carried.sum()
        return loss + torch.dot(carried[: len(numbers)], torch.stack(list(numbers)))

    def weigh(self, factor: Tensor | float) -> None:
        """Do nothing: numbers count for what the loss counts for."""

    def agree_on_skip(self, is_skipped: bool, iteration: int) -> None:
        """Do nothing: a rank that skips an update takes part with a weight of 0."""

    def check_complete(self) -> None:
        """Reject an update in which a parameter got no gradient: it would not be averaged."""
        if self._finds_unused:
            return
        try:
            self._ddp.reducer._check_reducer_finalized()
        except RuntimeError as error:
            names = [name for name, one in self._carrier.trained.items() if one.grad is None]
            shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise ModelError(
                f"The loss does not depend on {shown or 'some parameters'}, so the ranks cannot "
                "average all gradients. Write parallel={'unused_parameters': True} if that is "
                "intended, or leave these parameters out of the optimizer."
            ) from error

    def _warm_up(self) -> None:
        """Let DDP find the order of its buckets now, before the first update.

        It lays them out again after the first backward, and sums of three numbers depend on the
        order. A resumed run would make its first update with another layout than the run that was
        cut off. The loss is artificial, so that the order does not depend on the data.
        """
        for _ in range(WARM_UP):
            loss = self.forward(self._carrier.sum_of_all)
            loss.backward()  # type: ignore[no-untyped-call]
        for parameter in self._carrier.parameters():
            parameter.grad = None


class _Carrier(torch.nn.Module):
    """What DDP wraps: it knows the parameters, and runs whatever is to be computed."""

    def __init__(
        self, model: torch.nn.Module, parameters: Iterable[Tensor], *, has_unused: bool
    ) -> None:
        super().__init__()
        self.model = model
        wanted = {id(parameter): parameter for parameter in parameters}
        inside = {id(parameter) for parameter in model.parameters()}
        # A loss function may have parameters of its own, which are not the model's.
        outside = [one for number, one in wanted.items() if number not in inside]
        self.others = torch.nn.ParameterList(cast("list[torch.nn.Parameter]", outside))
        device = next(iter(wanted.values())).device
        self.carried = torch.nn.Parameter(torch.zeros(SLOTS, device=device))
        if has_unused:  # DDP warns of an option that finds nothing in the first iteration.
            self.unused = torch.nn.Parameter(torch.zeros(1, device=device))
        names = dict(self.named_parameters())
        self.trained = {
            name.removeprefix("model."): one for name, one in names.items() if id(one) in wanted
        }
        # What other updates step is theirs to average, and buffers are SyncBuffers' business.
        ignored = [n for n, one in names.items() if id(one) not in wanted and n not in OWN]
        buffers = [name for name, _ in self.named_buffers()]
        self._ddp_params_and_buffers_to_ignore = [*ignored, *buffers]

    def forward(self, compute: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is computed
        return compute()

    def sum_of_all(self) -> Tensor:
        """Depend on each parameter that is trained."""
        parts = [one.sum() for one in (*self.trained.values(), self.carried) if one.requires_grad]
        return torch.stack([part.float() for part in parts]).sum()


def _wrap(carrier: _Carrier, *, finds_unused: bool) -> DistributedDataParallel:
    from torch.nn.parallel import DistributedDataParallel

    # Newer versions of torch warn of the old name.
    names = inspect.signature(DistributedDataParallel).parameters
    buffers = "forward_sync_buffers" if "forward_sync_buffers" in names else "broadcast_buffers"
    options: dict[str, bool] = {buffers: False, "find_unused_parameters": finds_unused}
    # The weights are those of the first rank already.
    return DistributedDataParallel(carrier, init_sync=False, **options)  # type: ignore[arg-type]


@contextmanager
def _all_trainable(parameters: dict[str, torch.nn.Parameter]) -> Iterator[None]:
    """Let DDP see parameters that are frozen now, too: a hook may thaw them later."""
    frozen = [one for one in parameters.values() if not one.requires_grad]
    try:
        for parameter in frozen:
            parameter.requires_grad_(True)
        yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(False)
