"""The connection of a process to the other ranks of its run.

Everything that ranks tell each other passes through here, except for gradients and shards, which
are torch's own business. A process that trains alone has a connection too, to nobody: each call
returns at once.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import torch
from torch import Tensor

from hookloop.errors import HookloopError
from hookloop.parallel import slurm
from hookloop.parallel.failure import FailureNotice, PeerFailed
from hookloop.parallel.settings import TIMEOUT
from hookloop.parallel.warnings_of_torch import set_aside
from hookloop.parallel.world import World

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store
    from torch.distributed import ProcessGroup

Value = TypeVar("Value")
Reduction = Literal["sum", "mean", "max", "min"]

_log = logging.getLogger("hookloop")


class Ranks:
    """The connection to the other ranks.

    Args:
        world: The rank of this process and the number of all.
        timeout: Seconds for which one rank may keep the others waiting.

    >>> alone = Ranks(World())
    >>> alone.gather("a"), alone.share(7), alone.reduce(3.0, "sum")
    (['a'], 7, 3.0)
    """

    def __init__(self, world: World, timeout: float = TIMEOUT) -> None:
        self.world = world
        self.timeout = timeout
        self.is_broken = False
        self._own_group: ProcessGroup | None = None
        self._is_ours = False
        self._failure_notice: FailureNotice | None = None

    @property
    def is_open(self) -> bool:
        """Whether there are other ranks, and they are connected."""
        return self._own_group is not None

    def open(self, device: torch.device) -> None:
        """Connect the ranks, once; a single process has nothing to do.

        Args:
            device: Where the model is, which decides how tensors travel.
        """
        if not self.world.is_alone and not self.is_open:
            with set_aside():
                self._open(device)

    def _open(self, device: torch.device) -> None:
        import torch.distributed as dist

        if not dist.is_initialized():  # Otherwise whoever started this process has done it.
            backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
            rank, size = self.world.rank, self.world.size
            dist.init_process_group(
                backend, store=self._connect(), rank=rank, world_size=size, timeout=self._wait
            )
            self._is_ours = True
            atexit.register(self.close)
        # Messages of ours have a group of their own: in that of the gradients they could be
        # mistaken for these.
        self._own_group = dist.new_group(backend="gloo", timeout=self._wait)
        self._failure_notice = FailureNotice(self.world, _store())

    def _connect(self) -> Store:
        """Return the store through which the ranks find each other."""
        if "RANK" not in os.environ and slurm.is_step():
            return slurm.open_store(self.world.rank, self.world.size, self._wait)
        from torch.distributed.rendezvous import rendezvous

        store, _, _ = next(iter(rendezvous("env://", timeout=self._wait)))
        return cast("Store", store)

    @property
    def _wait(self) -> timedelta:
        return timedelta(seconds=self.timeout)

    def close(self) -> None:
        """Leave the others, in order or after a failure."""
        atexit.unregister(self.close)
        group, self._own_group = self._own_group, None
        if group is None:
            return
        import torch.distributed as dist

        if self._is_ours and dist.is_initialized():
            dist.destroy_process_group()

    def break_off(self, error: BaseException, iteration: int) -> None:
        """Leave the others because this rank has failed: they learn why, and stop waiting."""
        self.is_broken = True
        if self._failure_notice is not None:
            self._failure_notice.say(error, iteration)
        # What others wait for in a collective fails as soon as the connection is closed.
        with suppress(RuntimeError):
            self.close()

    def failure_of_another(self, error: BaseException, iteration: int) -> PeerFailed | None:
        """Return what to raise if an error here is caused by the failure of another rank."""
        if self._failure_notice is None:
            return None
        return self._failure_notice.of_another(error, iteration)

    def wait_for_readers(self) -> None:
        """After a failure: stay until the others know why, if they need this process for that."""
        if self._failure_notice is not None:
            self._failure_notice.wait_for_readers()

    @property
    def group(self) -> ProcessGroup | None:
        """The group for messages of ours; None in one process."""
        return None if self.world.is_alone else self._group()

    # --- what ranks tell each other ---------------------------------------------------------

    def gather(self, value: Value) -> list[Value]:
        """Return the values of all ranks, in their order, on every rank."""
        if self.world.is_alone:
            return [value]
        import torch.distributed as dist

        sent: list[bytes] = [b""] * self.world.size
        dist.all_gather_object(sent, _encode(value), group=self._group())
        return [_decode(one) for one in sent]

    def share(self, value: Value) -> Value:
        """Return the value of the first rank on every rank."""
        if self.world.is_alone:
            return value
        import torch.distributed as dist

        sent = [_encode(value) if self.world.is_main else b""]
        dist.broadcast_object_list(sent, src=0, group=self._group())
        return cast("Value", _decode(sent[0]))

    def largest(self, numbers: Sequence[int]) -> list[int]:
        """Return the largest of each number over all ranks."""
        if self.world.is_alone:
            return list(numbers)
        import torch.distributed as dist

        tensor = torch.tensor(numbers, dtype=torch.int64)
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=self._group())
        return cast("list[int]", tensor.tolist())

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Return the sum of each number over all ranks, in double precision."""
        if self.world.is_alone:
            return list(numbers)
        import torch.distributed as dist

        tensor = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(tensor, group=self._group())
        return cast("list[float]", tensor.tolist())

    def reduce(self, value: Value, how: Reduction = "mean") -> Value:
        """Return the sum, mean, largest or smallest of a number or tensor over all ranks."""
        if how not in ("sum", "mean", "max", "min"):
            raise HookloopError(f"reduce: {how!r} must be one of 'sum', 'mean', 'max', 'min'.")
        if self.world.is_alone:
            return value
        import torch.distributed as dist

        operations = {"max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}
        operation = operations.get(how, dist.ReduceOp.SUM)
        if isinstance(value, Tensor):
            tensor = value.detach().cpu()
            tensor = tensor.clone() if tensor is value or how != "mean" else tensor
            tensor = tensor.double() if how == "mean" and not tensor.is_complex() else tensor
        else:
            tensor = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(tensor, op=operation, group=self._group())
        if how == "mean":
            tensor = tensor / self.world.size
        if not isinstance(value, Tensor):
            number = tensor.item()
            is_whole = isinstance(value, int) and how != "mean"
            return cast("Value", int(number) if is_whole else number)
        kind = value.dtype if how != "mean" or value.is_floating_point() else torch.float64
        return cast("Value", tensor.to(value.device, kind))

    def copy_from_first(self, tensors: Sequence[Tensor]) -> None:
        """Make tensors, in place, those of the first rank."""
        if self.world.is_alone:
            return
        import torch.distributed as dist

        with torch.no_grad():
            for tensor in tensors:
                dist.broadcast(tensor.detach(), src=0)

    def _group(self) -> ProcessGroup:
        if self._own_group is None:
            state = "has been closed" if self.is_broken else "is not open yet"
            raise HookloopError(
                f"The connection to the other ranks {state}: hooks can use run.gather() and "
                "run.reduce() from before_run until the end of the run, unless it failed."
            )
        return self._own_group


# torch's own functions for objects pickle them, and cannot pickle each kind of tensor, such as the
# unsigned ones in the state of NumPy's generator. Whatever arrives was sent by a rank of this run.


def _encode(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _decode(sent: bytes) -> Any:  # noqa: ANN401 - whatever was sent
    return torch.load(io.BytesIO(sent), map_location="cpu", weights_only=False)


def _store() -> Store:
    """Return the store in which ranks leave words for each other."""
    from torch.distributed import distributed_c10d

    # A private name of torch's: there is no public way to the store of a group that somebody else,
    # such as Ray, has made.
    return distributed_c10d._get_default_store()
