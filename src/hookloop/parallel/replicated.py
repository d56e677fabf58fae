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
"""How many numbers travel with the gradients, at most."""

OWN = ("carried", "unused")
"""Parameters that the carrier has of its own."""

WARM_UP = 2
"""Passes after which DDP has found the order of its buckets, in which it sums from then on."""


class Replica:
    """The gradients of one update, averaged over all ranks.

    Args:
        model: The user's model.
        parameters: Returns those that the update's optimizers step; there may be others later.
        finds_unused: Whether parameters may be left out of a loss. Otherwise it is an error, and
            an iteration costs less.
        slots: How many numbers travel with the gradients.
    """

    has_parts = False
    """Each rank has whole gradients."""

    def __init__(
        self,
        model: torch.nn.Module,
        parameters: Callable[[], Sequence[Tensor]],
        *,
        finds_unused: bool,
        slots: int = SLOTS,
    ) -> None:
        self._model, self._parameters, self._slots = model, parameters, slots
        self._finds_unused = finds_unused
        self._begin(parameters())

    def _begin(self, trained: Sequence[Tensor]) -> None:
        """Let DDP know the parameters."""
        self._count, finds_unused = len(trained), self._finds_unused
        self._carrier = _Carrier(self._model, trained, self._slots, finds_unused=finds_unused)
        # Kept here, as attributes of a module are looked up by a function of torch's.
        self._parameter = self._carrier.carried
        self._root: Tensor = self._parameter
        self._factor: tuple[object, Tensor] = None, self._parameter
        with _all_trainable(self._carrier.trained):
            self._ddp = _wrap(self._carrier, finds_unused=finds_unused)
        if not finds_unused:
            self._warm_up()

    @property
    def mean_numbers(self) -> Tensor:
        """The mean of the numbers over all ranks; read it after the last backward.

        Nothing changes it later: the next update gets a tensor of its own.
        """
        return cast("Tensor", self._carrier.carried.grad)

    def start(self, *, synchronizes: bool) -> None:
        """Begin a microbatch; gradients are averaged in the backward of the last one only."""
        self._ddp.__dict__["require_backward_grad_sync"] = synchronizes

    def clear(self) -> None:
        """Drop the numbers of the last update; begin again if there are other parameters now."""
        if len(trained := self._parameters()) != self._count:
            known = {id(one) for one in self._carrier.parameters()}
            for one in trained:
                if id(one) not in known:  # Each rank may have drawn another value.
                    torch.distributed.broadcast(one.detach(), src=0)
            self._begin(trained)
        self._parameter.grad = None

    def forward(self, compute: Callable[[Any], Tensor | None], run: object) -> Tensor | None:
        """Compute a loss; `backward` averages its gradients."""
        loss, self._root = self._ddp(compute, run)
        return cast("Tensor | None", loss)

    def backward(
        self, loss: Tensor | None, factor: Tensor | float, numbers: Sequence[Tensor]
    ) -> None:
        """Add the gradients of a loss, and numbers of this rank, both times a factor.

        Without a loss the rank only takes part, so that the others do not wait for it.
        """
        gradient = self._weighted(numbers, factor)
        if loss is None:
            self._root.backward(gradient)  # type: ignore[no-untyped-call]
            return
        # Both at once: to make the numbers part of the loss takes six operations of autograd more,
        # 40 us where forward and backward of a tiny model take 255.
        torch.autograd.backward((loss, self._root), (self._like(loss, factor), gradient))

    def averaged_loss(
        self, loss: Tensor | None, factor: Tensor | float, numbers: Sequence[Tensor]
    ) -> Tensor:
        """Return a loss whose backward does the same, whatever it is scaled with on the way."""
        gradient = self._weighted(numbers, factor)
        value = self._parameter.new_zeros(()) if loss is None else loss * factor
        return cast("Tensor", _Join.apply(value, self._root, gradient))  # type: ignore[no-untyped-call]

    def _like(self, loss: Tensor, factor: Tensor | float) -> Tensor:
        """Return a factor as a gradient of the loss."""
        if isinstance(factor, Tensor):
            return factor.to(loss)
        key = factor, loss.dtype, loss.device
        if key != self._factor[0]:  # Most often it is that of the last update.
            self._factor = key, loss.new_tensor(factor)
        return self._factor[1]

    def _weighted(self, numbers: Sequence[Tensor], factor: Tensor | float) -> Tensor:
        """Return the gradient of the carrier's own parameter."""
        count = len(self._parameter)
        if not numbers or (not isinstance(factor, Tensor) and not factor):
            return torch.zeros_like(self._parameter)
        weighted = weigh(numbers, factor)
        if len(numbers) == count:
            return weighted
        return torch.nn.functional.pad(weighted, (0, count - len(numbers)))

    def agree_on_skip(self, is_skipped: bool, iteration: int) -> None:
        """Do nothing: a rank that skips an update takes part with a weight of 0."""

    def check_complete(self) -> None:
        """Reject an update in which a parameter got no gradient: it would not be averaged."""
        check_count(self._parameters(), self._count)
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

    def average(self) -> None:
        """Average gradients that were added without the other ranks, and the numbers with them."""
        self.start(synchronizes=True)
        if self._finds_unused:  # What is left out of this backward is averaged as it is.
            self.backward(self.forward(lambda _: None, None), 0.0, ())
        else:
            self.backward(self.forward(_Carrier.sum_of_all, self._carrier), 0.0, ())

    def _warm_up(self) -> None:
        """Let DDP find the order of its buckets now, before the first update.

        It lays them out again after the first backward, and sums of three numbers depend on the
        order. A resumed run would make its first update with another layout than the run that was
        cut off. The loss is artificial, so that the order does not depend on the data.
        """
        # Gradients of a resumed run may wait for their update.
        waiting = [(parameter, parameter.grad) for parameter in self._carrier.parameters()]
        for parameter, _ in waiting:
            parameter.grad = None
        for _ in range(WARM_UP):
            self.backward(self.forward(_Carrier.sum_of_all, self._carrier), 1.0, ())
        for parameter, gradient in waiting:
            parameter.grad = gradient


def check_count(trained: Sequence[Tensor], count: int) -> None:
    """Reject parameters that an optimizer got within an update, which nobody averages yet."""
    if len(trained) != count:
        raise ModelError(
            "An optimizer got other parameters in the middle of an update, whose gradients the "
            "ranks cannot average any more: change them before or after an iteration, such as in "
            "before_train_iter.",
            argument="optimizer",
        )


def weigh(numbers: Sequence[Tensor], factor: Tensor | float) -> Tensor:
    """Return numbers times a factor; if that is 0, they are 0 too, whatever they were."""
    weighted = torch.stack(tuple(numbers)).mul_(factor)
    if isinstance(factor, Tensor):  # A mean over nothing, which counts for nothing, is NaN.
        weighted = torch.where(factor == 0, 0.0, weighted)
    return weighted


class _Carrier(torch.nn.Module):
    """What DDP wraps: it knows the parameters, and runs whatever is to be computed."""

    def __init__(
        self,
        model: torch.nn.Module,
        parameters: Iterable[Tensor],
        slots: int,
        *,
        finds_unused: bool,
    ) -> None:
        super().__init__()
        self.model = model
        self._finds_unused = finds_unused
        wanted = {id(parameter): parameter for parameter in parameters}
        inside = {id(parameter) for parameter in model.parameters()}
        # A loss function may have parameters of its own, which are not the model's.
        outside = [one for number, one in wanted.items() if number not in inside]
        self.others = torch.nn.ParameterList(cast("list[torch.nn.Parameter]", outside))
        device = next(iter(wanted.values())).device
        self.carried = torch.nn.Parameter(torch.zeros(slots, device=device))
        if finds_unused:  # DDP warns of an option that finds nothing in the first iteration.
            self.unused = torch.nn.Parameter(torch.zeros(1, device=device))
        names = dict(self.named_parameters())
        self.trained = {
            name.removeprefix("model."): one for name, one in names.items() if id(one) in wanted
        }
        # What other updates step is theirs to average, and buffers are SyncBuffers' business.
        ignored = [n for n, one in names.items() if id(one) not in wanted and n not in OWN]
        buffers = [name for name, _ in self.named_buffers()]
        self._ddp_params_and_buffers_to_ignore = [*ignored, *buffers]

    def forward(self, compute: Callable[[Any], Any], run: object) -> tuple[Any, Tensor]:
        # DDP looks for the parameters that the results depend on, and skips a bare parameter.
        return compute(run), self.carried.view(-1) if self._finds_unused else self.carried

    def sum_of_all(self) -> Tensor:
        """Depend on each parameter that is trained."""
        parts = [one.sum() for one in self.trained.values() if one.requires_grad]
        return torch.stack([part.float() for part in parts]).sum()


class _Join(torch.autograd.Function):
    """A loss whose backward also gives another parameter its gradient."""

    @staticmethod
    def forward(ctx: Any, loss: Tensor, parameter: Tensor, gradient: Tensor) -> Tensor:  # noqa: ANN401
        ctx.gradient = gradient
        return loss.view_as(loss)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:  # noqa: ANN401
        return grad, ctx.gradient, None


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
