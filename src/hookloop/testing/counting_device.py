"""A device without hardware, which counts how often the host reads from it.

Its tensors live in the memory of the CPU, behind torch's own dispatcher, so forward, backward,
optimizers, autocast and copies take the paths that they take for an accelerator. What it cannot
show is time: nothing runs asynchronously.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from hookloop.errors import HookloopError

_TORCH = str(Path(torch.__file__).parent)
_HERE = __file__
_NAME = "counting"

# Operations that give a number to Python, and so wait for a real device.
_READING = {
    "aten::_local_scalar_dense": "item",
    "aten::is_nonzero": "bool",
    "aten::equal": "equal",
    "aten::nonzero": "nonzero",  # The shape of its result depends on the numbers.
    "aten::masked_select": "masked_select",
    "aten::_unique2": "unique",
}


class HostReadError(HookloopError):
    """The host read from the counting device where that was not allowed."""


@dataclass(frozen=True)
class HostRead:
    """One read by the host.

    Attributes:
        what: How it read: ``"item"``, ``"tolist"``, ``"copy to the CPU"``, ...
        where: The file and line that asked for it, outside of torch.
    """

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} at {self.where}"


class CountingDevice:
    r"""A device of torch, named ``counting``, that notes every read by the host.

    Reads are what makes a fast device wait: ``item``, ``tolist``, ``bool``, a copy to the CPU.
    Move a model to it before or after its optimizer is built, or let the Trainer do it. Use it in
    a process of its own: torch takes a device only before the first backward of a process, and
    keeps it until the end, so that trainings on several ranks find it there, too.

    Args:
        allow: Called with each read; False makes that read an error where it happens.

    Attributes:
        reads: The reads since the block was entered, in their order.

    Example:
        with CountingDevice() as device:
            tiny_trainer(MyHook(), device=device.name).train()
        print(*device.reads, sep="\n")
    """

    name = _NAME

    def __init__(self, allow: Callable[[HostRead], bool] | None = None) -> None:
        self.reads: list[HostRead] = []
        self._allow = allow
        self._swaps = False

    def __enter__(self) -> CountingDevice:
        _register()
        _check_gradients()
        self.reads = []
        self._swaps = torch.__future__.get_swap_module_params_on_conversion()
        # Parameters stay the same objects when a model is moved, as on a real device.
        torch.__future__.set_swap_module_params_on_conversion(True)
        _devices.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _devices.remove(self)
        torch.__future__.set_swap_module_params_on_conversion(self._swaps)

    @contextmanager
    def forbidding(self) -> Iterator[None]:
        """Make every read within the block an error, at the line that reads.

        Raises:
            HostReadError: At a read, with its line.
        """
        before, self._allow = self._allow, _never
        try:
            yield
        finally:
            self._allow = before

    def note(self, what: str) -> None:
        """Take a read; what counts is the line outside of torch that asked for it."""
        read = HostRead(what, _asking_line())
        self.reads.append(read)
        if self._allow is not None and not self._allow(read):
            raise HostReadError(
                f"{read}: the host reads from the device here. Keep the tensor, and read it where "
                "something is due."
            )


_devices: list[CountingDevice] = []
"""Those whose block is entered; a read goes to all of them."""


def _never(read: HostRead) -> bool:
    return False


def _note(what: str) -> None:
    for device in _devices:
        device.note(what)


def _asking_line() -> str:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file != _HERE and not file.startswith(_TORCH) and not file.startswith("<"):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "torch"


class _OnDevice(Tensor):
    """A tensor of the counting device, whose numbers are in ``held``."""

    held: Tensor

    @staticmethod
    def __new__(cls: type, held: Tensor, requires_grad: bool = False) -> _OnDevice:
        make = Tensor._make_wrapper_subclass
        made: _OnDevice = make(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=torch.device(_NAME, 0),
            requires_grad=requires_grad,
        )
        made.held = held
        return made

    def __repr__(self) -> str:  # type: ignore[override]  # It has no contents of its own.
        return f"{self.held!r} on {_NAME}"

    def tolist(self) -> Any:  # noqa: ANN401 - a number, or lists of lists
        """Return the numbers; torch reads the memory of this class without its dispatcher."""
        _note("tolist")
        return self.held.tolist()

    def numpy(self, *, force: bool = False) -> Any:  # noqa: ANN401 - NumPy may be missing
        """Reject it as for any device, unless it is forced."""
        if not force:
            raise TypeError(f"can't convert {_NAME}:0 device type tensor to numpy. Use .cpu().")
        _note("copy to the CPU")
        return self.held.numpy(force=True)

    def data_ptr(self) -> int:
        """Return the address of the numbers, which says whether two tensors share them."""
        return self.held.data_ptr()

    # Copies and pickles are made by way of the CPU, as torch does for any device.
    def __reduce_ex__(self, protocol: Any) -> Any:  # noqa: ANN401 - as torch types it
        return (_again, (self.cpu(), self.requires_grad))

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        if id(self) in memo:
            return cast("Tensor", memo[id(self)])
        made: Tensor = _OnDevice(self.held.clone(), self.requires_grad)
        if isinstance(self, torch.nn.Parameter):
            made = torch.nn.Parameter(made.detach(), self.requires_grad)
        memo[id(self)] = made
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch declares it as a plain function.
        cls,
        func: Any,  # noqa: ANN401 - an operation of torch
        types: Iterable[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        return _run(func, args, kwargs or {})


def _again(held: Tensor, requires_grad: bool) -> Tensor:
    return held.requires_grad_(requires_grad)


def _held(value: object) -> object:
    return value.held if isinstance(value, _OnDevice) else value


def _of_device(value: object) -> object:
    return _OnDevice(value) if isinstance(value, Tensor) else value


def _run(func: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> object:  # noqa: ANN401
    name = func._schema.name
    if what := _READING.get(name):
        _note(what)
    device = kwargs.get("device")
    here = {key: pytree.tree_map(_held, value) for key, value in kwargs.items()}
    leaves_device = device is not None and torch.device(cast("str", device)).type == "cpu"
    if device is not None and not leaves_device:
        here["device"] = "cpu"
    is_copied_away = name == "aten::copy_" and not isinstance(args[0], _OnDevice)
    if is_copied_away or (leaves_device and name == "aten::_to_copy"):
        _note("copy to the CPU")
    result = func(*pytree.tree_map(_held, args), **here)
    if is_copied_away:
        return args[0]
    if leaves_device:
        return result
    if not func._schema.is_mutable:
        return pytree.tree_map(_of_device, result)
    # What an operation changes in place stays the object that the caller has.
    given = {
        id(one.held): one
        for one in pytree.tree_leaves((args, kwargs))
        if isinstance(one, _OnDevice)
    }
    return pytree.tree_map(lambda one: given.get(id(one), _of_device(one)), result)


class _Module:
    """What torch asks of a device: ``torch.counting``."""

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def is_initialized() -> bool:
        return True

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    # The numbers come from the CPU, and so do the random ones.
    @staticmethod
    def manual_seed_all(seed: int) -> None:
        pass

    @staticmethod
    def get_rng_state(device: object = None) -> Tensor:
        return torch.get_rng_state()

    @staticmethod
    def set_rng_state(state: Tensor, device: object = None) -> None:
        pass

    @staticmethod
    def get_amp_supported_dtype() -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


@cache
def _check_gradients() -> None:
    """Reject a process whose first backward was before torch knew of the device.

    torch makes a queue for each device at the first backward of a process, and never again.
    """
    number = torch.ones((), device=_NAME, requires_grad=True)
    try:
        torch.autograd.grad(number * 2, number)
    except RuntimeError as error:
        raise HookloopError(
            "This process computed gradients before torch knew of the counting device, and torch "
            "takes a device only before that. Use it in a process of its own: a script, or a file "
            "of tests that is run alone."
        ) from error


@cache
def _register() -> object:
    """Tell torch of the device, once in a process."""
    # Imported late: this is an experimental part of torch, which nothing else here needs.
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend(_NAME, backend_module=_Module)
    library = cast("Any", torch.library.Library)("aten", "IMPL")
    operations: dict[str, Callable[..., Tensor]] = {
        "empty.memory_format": _empty,
        "empty_strided": _empty_strided,
        "_copy_from": _copy_from,
    }
    for name, function in operations.items():
        library.impl(name, function, "PrivateUse1")
    fallback = cast("Any", torch.library.Library)("_", "IMPL")
    fallback.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for name in (*_LOWER, *_FULL):
        library.impl(name, _autocast(name), "AutocastPrivateUse1")
    return library, fallback  # They take their operations away when they are deleted.


# The operations that matter of those that torch's autocast lowers, or keeps in full precision. On
# this device the others take what they get.
_LOWER = ("linear", "matmul", "mm", "addmm", "bmm", "conv1d", "conv2d", "conv3d")
_FULL = (
    "nll_loss",
    "mse_loss",
    "log_softmax.int",
    "softmax.int",
    "layer_norm",
    "cross_entropy_loss",
)


def _autocast(name: str) -> Callable[..., object]:
    base, _, overload = name.partition(".")
    operation = getattr(getattr(torch.ops.aten, base), overload or "default")
    off = torch._C.DispatchKeySet(cast("Any", torch._C.DispatchKey).AutocastPrivateUse1)

    def run(*args: object, **kwargs: object) -> object:
        wanted = torch.get_autocast_dtype(_NAME) if name in _LOWER else torch.float32

        def cast_one(value: object) -> object:
            is_ours = isinstance(value, _OnDevice) and value.dtype.is_floating_point
            return cast("Tensor", value).to(wanted) if is_ours else value

        with torch._C._ExcludeDispatchKeyGuard(off):
            return operation(*pytree.tree_map(cast_one, args), **kwargs)

    return run


def _empty(size: Sequence[int], *, dtype: torch.dtype | None = None, **_: object) -> Tensor:
    return _OnDevice(torch.empty(size, dtype=dtype, device="cpu"))


def _empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: torch.dtype | None = None, **_: object
) -> Tensor:
    return _OnDevice(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


def _copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    if not isinstance(target, _OnDevice):
        _note("copy to the CPU")
    cast("Tensor", _held(target)).copy_(cast("Tensor", _held(source)))
    return target
