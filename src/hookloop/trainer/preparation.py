"""What is done to a model before it is trained: ``prepare=[ChannelsLast(), Cast("bf16")]``.

Each step changes the model in place: parameters stay the objects that an optimizer holds, and the
keys of the state stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import cast

import torch
from torch import Tensor, nn

from hookloop.errors import ModelError, nearest
from hookloop.parallel.sharded import checkpoint_activations
from hookloop.trainer import compilation
from hookloop.trainer.compilation import Compilation

DTYPES = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "fp64": torch.float64,
}


@dataclass(frozen=True)
class Preparation:
    """One step of the preparation of a model. A subclass has fields of plain values."""

    def apply(self, model: nn.Module) -> Compilation | None:
        """Change the model in place; a second time changes nothing more."""
        raise NotImplementedError

    def describe(self) -> dict[str, object]:
        """Return the step as plain values, which a checkpoint holds."""
        return {"type": type(self).__name__, **asdict(self)}


@dataclass(frozen=True)
class Compile(Preparation):
    """Compile the model in place, as ``compile=`` does.

    Args:
        mode: The ``mode`` of ``torch.compile``.
        backend: Its ``backend``.
        dynamic: Whether shapes may vary.
        fullgraph: Whether to reject a model that is not one graph.
        options: Options of the backend.
        parts: Dotted names of modules, or ``fnmatch`` patterns: ``"layers.*"``, each of which is
            compiled by itself; by default the whole model. Layers that are alike compile faster
            this way.
    """

    mode: str | None = None
    backend: str | None = None
    dynamic: bool | None = None
    fullgraph: bool = False
    options: dict[str, object] | None = None
    parts: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.parts is not None:
            object.__setattr__(self, "parts", _patterns(self, self.parts))

    def apply(self, model: nn.Module) -> Compilation | None:
        """Compile the model's forward, or that of its parts."""
        given = {name: value for name, value in asdict(self).items() if value not in (None, False)}
        given.pop("parts", None)
        if self.dynamic is False:  # Unlike None, it forbids dynamic shapes.
            given["dynamic"] = False
        if self.parts is not None:
            first, *rest = _outermost(model, self, self.parts)
            for module in rest:
                compilation.compile_model(module, given or True)
            return compilation.compile_model(first, given or True)
        return compilation.compile_model(model, given or True)


@dataclass(frozen=True)
class ActivationCheckpointing(Preparation):
    """Compute the activations of some modules again in the backward pass, instead of keeping them.

    It takes less memory and more time, and gives the same numbers, with dropout too.

    Args:
        patterns: Dotted names of modules, or ``fnmatch`` patterns: ``"layers.*"``. Of nested
            modules, only the outermost is wrapped.
    """

    patterns: str | Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "patterns", _patterns(self, self.patterns))

    def apply(self, model: nn.Module) -> Compilation | None:
        """Wrap the modules."""
        checkpoint_activations(model, _outermost(model, self, self.patterns))
        return None


@dataclass(frozen=True)
class ChannelsLast(Preparation):
    """Lay out images with their channels last, which is fastest for convolutions on a GPU.

    It converts the parameters with four dimensions, and those floating-point inputs of the model
    that have four.
    """

    def apply(self, model: nn.Module) -> Compilation | None:
        """Convert the parameters, and the inputs from now on."""
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if _lay_out_inputs not in model._forward_pre_hooks.values():
            model.register_forward_pre_hook(_lay_out_inputs, with_kwargs=True)
        return None


@dataclass(frozen=True)
class Cast(Preparation):
    """Cast the floating-point parameters and buffers of the model, for the optimizer too.

    Floating-point inputs of the model are cast too, and its outputs are cast to float32, in which
    the loss is computed. Sixteen bits take half the memory, but lose small updates: ``precision=``
    keeps float32 parameters instead.

    Args:
        dtype: ``"bf16"``, ``"fp16"``, ``"fp32"`` or ``"fp64"``.
    """

    dtype: str

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ModelError(
                f"Cast: there is no dtype '{self.dtype}'.{nearest(str(self.dtype), DTYPES)} "
                f"There are: {', '.join(DTYPES)}."
            )

    def apply(self, model: nn.Module) -> Compilation | None:
        """Cast the model, and its inputs and outputs from now on."""
        dtype = DTYPES[self.dtype]
        model.to(dtype)
        for key, hook in list(model._forward_pre_hooks.items()):
            if isinstance(hook, _CastInputs):  # Of an earlier cast of the same model.
                del model._forward_pre_hooks[key]
                model._forward_pre_hooks_with_kwargs.pop(key, None)
        model.register_forward_pre_hook(_CastInputs(dtype), with_kwargs=True)
        is_wide = self.dtype in ("fp32", "fp64")
        if not is_wide and _widen_outputs not in model._forward_hooks.values():
            model.register_forward_hook(_widen_outputs)
        return None


@dataclass(frozen=True)
class _CastInputs:
    """A hook of a module that casts floating inputs."""

    dtype: torch.dtype

    def __call__(
        self, module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[object, dict[str, object]]:
        def cast_one(tensor: Tensor) -> Tensor:
            return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

        return convert(args, cast_one), cast("dict[str, object]", convert(kwargs, cast_one))


def _lay_out_inputs(
    module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[object, dict[str, object]]:
    return convert(args, _laid_out), cast("dict[str, object]", convert(kwargs, _laid_out))


def _laid_out(tensor: Tensor) -> Tensor:
    if tensor.dim() == 4 and tensor.is_floating_point():
        return tensor.contiguous(memory_format=torch.channels_last)
    return tensor


def _widen_outputs(module: nn.Module, args: tuple[object, ...], output: object) -> object:
    return convert(output, lambda one: one.float() if one.is_floating_point() else one)


def convert(value: object, change: Callable[[Tensor], Tensor]) -> object:
    """Change the tensors in plain containers; an object of any other type stays as it is."""
    if isinstance(value, Tensor):
        return change(value)
    if type(value) is dict:
        return {key: convert(item, change) for key, item in value.items()}
    if type(value) in (list, tuple):
        items = [convert(item, change) for item in cast("Iterable[object]", value)]
        return items if isinstance(value, list) else tuple(items)
    return value


def _patterns(step: Preparation, patterns: str | Sequence[str]) -> tuple[str, ...]:
    listed = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    if not listed:
        raise ModelError(f"{type(step).__name__}: give at least one pattern.")
    return listed


def _outermost(model: nn.Module, step: Preparation, patterns: Sequence[str]) -> list[nn.Module]:
    """Return the modules whose names match, without those inside another one of them."""
    names = [name for name, _ in model.named_modules() if name]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            hint = nearest(pattern, names) or f" There are: {', '.join(names[:8])}."
            raise ModelError(f"{type(step).__name__}: no module matches '{pattern}'.{hint}")
    found: dict[str, nn.Module] = {}
    for name, module in model.named_modules():  # An outer module comes before those in it.
        is_inside = any(name.startswith(f"{outer}.") for outer in found)
        if name and not is_inside and any(fnmatchcase(name, one) for one in patterns):
            found[name] = module
    return list(found.values())


@dataclass(frozen=True)
class Prepared:
    """A model that has been prepared: the steps, and the compilation that is among them."""

    steps: tuple[Preparation, ...] = ()
    compilation: Compilation | None = None

    @classmethod
    def of(cls, model: nn.Module, steps: Prepare) -> Prepared:
        """Apply steps to a model, in order.

        Raises:
            ModelError: If one is not a step, or cannot be applied to this model.
        """
        if isinstance(steps, Prepared):
            return steps
        listed = _listed(steps)
        compiled = [step.apply(model) for step in listed]
        return cls(tuple(listed), next((one for one in compiled if one is not None), None))

    def describe(self) -> list[dict[str, object]]:
        """Return the steps as plain values."""
        return [step.describe() for step in self.steps]

    def report(self) -> None:
        """Report a compilation that has compiled nothing."""
        if self.compilation is not None:
            self.compilation.report()


Prepare = Prepared | Iterable[Preparation] | None
"""What `prepare=` takes; a config brings a model that is prepared already."""


def _listed(steps: object) -> list[Preparation]:
    """Return the steps of a list; anything else is rejected, with what to write instead."""
    if steps is None:
        return []
    if isinstance(steps, Preparation):
        name = type(steps).__name__
        raise ModelError(f"prepare= is a list: write [{name}(...)].", argument="prepare")
    if isinstance(steps, str | type) or not isinstance(steps, Iterable):
        raise ModelError(
            f"prepare={steps!r}: it must be a list, such as [ChannelsLast(), Cast('bf16')].",
            argument="prepare",
        )
    listed: list[Preparation] = []
    for step in steps:
        if not isinstance(step, Preparation):
            hint = f": write {step.__name__}()" if isinstance(step, type) else ""
            raise ModelError(
                f"prepare= has {step!r} in it, which is not a step of a preparation{hint}. There "
                "are Compile, ActivationCheckpointing, ChannelsLast and Cast.",
                argument="prepare",
            )
        listed.append(step)
    if sum(isinstance(step, Compile) for step in listed) > 1:
        raise ModelError("prepare= has Compile twice.", argument="prepare")
    return listed
