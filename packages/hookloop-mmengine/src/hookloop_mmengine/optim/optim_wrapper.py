"""``mmengine.optim.OptimWrapper``: backward, accumulation, clipping and the step in one call."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from hookloop_mmengine.logging import MessageHub
from hookloop_mmengine.optim.base_wrapper import BaseOptimWrapper

_log = logging.getLogger("hookloop")


class Sharing(Protocol):
    """How several processes average the gradients of an optimizer."""

    def join(self, loss: Tensor) -> Tensor:
        """Return what to call backward on instead of this process's loss."""

    def complete(self) -> None:
        """Average gradients that were computed without `join`, before a step."""


class OptimWrapper(BaseOptimWrapper):
    """An optimizer that is updated with a loss.

    Args:
        optimizer: The optimizer.
        accumulative_counts: Losses per step; the losses that remain at the end make a last step.
        clip_grad: ``dict(max_norm=...)``, or ``dict(type="value", clip_value=...)``.
        base_param_settings: A parameter group without parameters, whose learning rate is shown
            when each parameter has a learning rate of its own.

    Attributes:
        sharing: Averages the gradients over several processes; None in a single one.
    """

    sharing: Sharing | None = None

    def __init__(
        self,
        optimizer: Optimizer,
        accumulative_counts: int = 1,
        clip_grad: Mapping[str, object] | None = None,
        base_param_settings: Mapping[str, object] | None = None,
    ) -> None:
        if accumulative_counts < 1:
            raise AssertionError("_accumulative_counts at least greater than or equal to 1")
        if not isinstance(optimizer, Optimizer):
            raise AssertionError(f"optimizer must be a torch.optim.Optimizer, not {optimizer!r}")
        self.optimizer = optimizer
        self._accumulative_counts = accumulative_counts
        if clip_grad is not None and not clip_grad:
            raise AssertionError(
                "If `clip_grad` is not None, it should have the arguments of torch's clipping."
            )
        # A copy, because the type is removed from it.
        self.clip_grad_kwargs = dict(clip_grad or {})
        self.clip_type = str(self.clip_grad_kwargs.pop("type", "norm"))
        if self.clip_type not in ("norm", "value"):
            raise ValueError(f"type of clip_grad should be 'norm' or 'value', not {self.clip_type}")
        # With several groups, no group need have the rate that was set, so an extra one shows it.
        if base_param_settings is None and len(optimizer.param_groups) > 1:
            base_param_settings = {"params": torch.tensor([0.0]), **optimizer.defaults}
        self.base_param_settings = dict(base_param_settings) if base_param_settings else None
        # Counts losses and not steps, because a step may take several.
        self._inner_count = 0
        # -1 until a loop sets the total, so that nothing counts as the rest.
        self._max_counts = -1
        self._remainder_counts = -1

    def update_params(
        self,
        loss: Tensor,
        step_kwargs: Mapping[str, object] | None = None,
        zero_kwargs: Mapping[str, object] | None = None,
    ) -> None:
        """Add the gradients of a loss, and make a step if it is due."""
        self.backward(self.scale_loss(loss))
        if self.should_update():
            self.step(**(step_kwargs or {}))
            self.zero_grad(**(zero_kwargs or {}))

    def backward(self, loss: Tensor, **kwargs: object) -> None:
        """Add the gradients of a loss."""
        if self.sharing is not None:
            loss = self.sharing.join(loss)
        loss.backward(**kwargs)  # type: ignore[no-untyped-call]
        self._inner_count += 1

    def step(self, **kwargs: object) -> None:
        """Clip the gradients and make a step."""
        if self.sharing is not None:
            self.sharing.complete()
        if self.clip_grad_kwargs:
            self._clip_grad()
        self.optimizer.step(**kwargs)  # type: ignore[call-overload]

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """Return the context for forward; gradients are synchronized only when a step is due."""
        # Only a model that is wrapped for several processes has it.
        no_sync = getattr(model, "no_sync", None)
        skips_sync = not self.should_sync() and callable(no_sync)
        context = cast("AbstractContextManager[None]", no_sync()) if skips_sync else nullcontext()  # type: ignore[misc]
        with context:
            yield

    def should_update(self) -> bool:
        """Return whether a step is due."""
        return self._inner_count % self._accumulative_counts == 0 or (
            self._inner_count == self._max_counts
        )

    def should_sync(self) -> bool:
        """Return whether the next loss makes a step due."""
        return (self._inner_count + 1) % self._accumulative_counts == 0 or (
            self._inner_count + 1 == self._max_counts
        )

    def scale_loss(self, loss: Tensor) -> Tensor:
        """Divide a loss by the number of losses in its step."""
        # The last step may have fewer losses than the others.
        factor = self._accumulative_counts
        full = self._max_counts - self._remainder_counts
        if factor > 1 and self._max_counts != -1 and self._inner_count >= full:
            factor = self._remainder_counts
        return loss / factor

    def initialize_count_status(self, model: nn.Module, init_counts: int, max_counts: int) -> None:
        """Set how many losses came before, and how many there will be in total."""
        self._inner_count = init_counts
        self._max_counts = max_counts
        # Our checkpoints keep gradients that wait for a step. Those of MMEngine do not.
        has_gradients = any(parameter.grad is not None for parameter in model.parameters())
        if self._inner_count % self._accumulative_counts and not has_gradients:
            _log.warning(
                "The training resumes between two steps; the gradients before it are lost."
            )
        self._remainder_counts = max_counts % self._accumulative_counts

    @property
    def inner_count(self) -> int:
        """The number of losses so far."""
        return self._inner_count

    def _clip_grad(self) -> None:
        parameters = [
            parameter
            for group in self.optimizer.param_groups
            for parameter in group["params"]
            # Parameters without a gradient in this step have no norm.
            if parameter.requires_grad and parameter.grad is not None
        ]
        if not parameters:
            return
        if self.clip_type == "value":
            nn.utils.clip_grad_value_(parameters, **self.clip_grad_kwargs)  # type: ignore[arg-type]
            return
        norm = nn.utils.clip_grad_norm_(parameters, **self.clip_grad_kwargs)  # type: ignore[arg-type]
        # The wrapper does not know its runner, so it uses the newest hub, as MMEngine does.
        MessageHub.get_current_instance().update_scalar("train/grad_norm", norm)


class AmpOptimWrapper(OptimWrapper):
    """An optimizer wrapper for mixed precision; in float16 the loss is scaled.

    Args:
        loss_scale: ``"dynamic"``, a number, or the arguments of torch's ``GradScaler``.
        dtype: ``"float16"``, the default, or ``"bfloat16"``.
        use_fsdp: Not offered.
    """

    def __init__(
        self,
        loss_scale: str | float | Mapping[str, object] = "dynamic",
        dtype: str | torch.dtype | None = None,
        use_fsdp: bool = False,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        if use_fsdp:
            raise NotImplementedError("use_fsdp=True is not offered.")
        named = {"float16": torch.float16, "bfloat16": torch.bfloat16, None: None}
        if isinstance(dtype, str | None) and dtype not in named:
            raise AssertionError(f"dtype should be 'float16' or 'bfloat16', not {dtype!r}")
        self.cast_dtype = named[dtype] if isinstance(dtype, str | None) else dtype
        options: dict[str, object] = {}
        if isinstance(loss_scale, Mapping):
            options = dict(loss_scale)
        elif isinstance(loss_scale, int | float):
            # A constant scale: the growth never comes.
            options = {"init_scale": float(loss_scale), "growth_interval": 2**31 - 1}
        elif loss_scale != "dynamic":
            raise TypeError(f"loss_scale must be a number, a dict or 'dynamic', not {loss_scale!r}")
        # bfloat16 has the range of float32, so nothing underflows.
        scales = self.cast_dtype is not torch.bfloat16
        # MMEngine requires a GPU here; torch can also do this on a CPU.
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.loss_scaler = torch.amp.GradScaler(self.device, enabled=scales, **options)  # type: ignore[arg-type]

    def backward(self, loss: Tensor, **kwargs: object) -> None:
        if self.sharing is not None:
            loss = self.sharing.join(loss)
        self.loss_scaler.scale(loss).backward(**kwargs)  # type: ignore[no-untyped-call]
        self._inner_count += 1

    def step(self, **kwargs: object) -> None:
        if self.sharing is not None:
            self.sharing.complete()
        if self.clip_grad_kwargs:
            # Clipping must see the true gradients.
            self.loss_scaler.unscale_(self.optimizer)
            self._clip_grad()
        # It leaves the step out if a gradient is infinite, and then `update` lowers the scale.
        self.loss_scaler.step(self.optimizer, **kwargs)
        self.loss_scaler.update()

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        dtype = self.cast_dtype or torch.float16
        with super().optim_context(model), torch.autocast(self.device, dtype=dtype):
            yield

    def state_dict(self) -> dict[str, object]:
        return super().state_dict() | {"loss_scaler": self.loss_scaler.state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, object]) -> None:
        state = dict(state_dict)
        scaler = state.pop("loss_scaler", None)
        if scaler:
            self.loss_scaler.load_state_dict(cast("dict[str, object]", scaler))
        super().load_state_dict(state)


class OptimWrapperDict(OptimWrapper):
    """Several optimizer wrappers by name, for a model that makes the steps itself."""

    def __init__(self, **optim_wrapper_dict: OptimWrapper) -> None:
        for name, wrapper in optim_wrapper_dict.items():
            if not isinstance(wrapper, OptimWrapper):
                raise AssertionError(f"`{name}` must be an OptimWrapper, but got {type(wrapper)}")
        self.optim_wrappers = optim_wrapper_dict

    def update_params(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError(
            "OptimWrapperDict: call update_params of its wrappers in train_step, one by one."
        )

    backward = step = zero_grad = update_params

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        if self.optim_wrappers:
            raise NotImplementedError("OptimWrapperDict: use optim_context of its wrappers.")
        yield

    def initialize_count_status(self, model: nn.Module, init_counts: int, max_counts: int) -> None:
        return None  # A model decides itself how often it updates each of them.

    @property
    def param_groups(self) -> dict[str, list[dict[str, object]]]:  # type: ignore[override]
        return {name: wrapper.param_groups for name, wrapper in self.items()}

    def get_lr(self) -> dict[str, list[float]]:
        return {
            f"{name}.{key}": values
            for name, wrapper in self.items()
            for key, values in wrapper.get_lr().items()
        }

    def get_momentum(self) -> dict[str, list[float]]:
        return {
            f"{name}.{key}": values
            for name, wrapper in self.items()
            for key, values in wrapper.get_momentum().items()
        }

    def state_dict(self) -> dict[str, object]:
        return {name: wrapper.state_dict() for name, wrapper in self.items()}

    def load_state_dict(self, state_dict: Mapping[str, object]) -> None:
        for name, state in state_dict.items():
            if name not in self:
                raise AssertionError(
                    f"Mismatched `state_dict`! cannot found {name} in OptimWrapperDict"
                )
            self[name].load_state_dict(cast("Mapping[str, object]", state))

    def items(self) -> Iterator[tuple[str, OptimWrapper]]:
        """Yield the names and wrappers."""
        yield from self.optim_wrappers.items()

    def keys(self) -> Iterator[str]:
        """Yield the names."""
        yield from self.optim_wrappers

    def values(self) -> Iterator[OptimWrapper]:
        """Yield the wrappers."""
        yield from self.optim_wrappers.values()

    def __getitem__(self, name: str) -> OptimWrapper:
        return self.optim_wrappers[name]

    def __contains__(self, name: object) -> bool:
        return name in self.optim_wrappers

    def __len__(self) -> int:
        return len(self.optim_wrappers)
