"""``mmengine.optim.OptimWrapper``: backward, accumulation, clipping and step in one call."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from hookloop.dialects.mmengine.logging import MessageHub

_log = logging.getLogger("hookloop")


class OptimWrapper:
    """An optimizer that is given losses.

    Args:
        optimizer: The optimizer.
        accumulative_counts: Losses per step; what remains at the end is a step of its own.
        clip_grad: ``dict(max_norm=...)``, or ``dict(type="value", clip_value=...)``.
        base_param_settings: A parameter group whose learning rate is shown, where each parameter
            has one of its own.
    """

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
        self.clip_grad_kwargs = dict(clip_grad or {})
        self.clip_type = str(self.clip_grad_kwargs.pop("type", "norm"))
        if self.clip_type not in ("norm", "value"):
            raise ValueError(f"type of clip_grad should be 'norm' or 'value', not {self.clip_type}")
        # With several groups none shows the rate that was set, so a group of its own does.
        if base_param_settings is None and len(optimizer.param_groups) > 1:
            base_param_settings = {"params": torch.tensor([0.0]), **optimizer.defaults}
        self.base_param_settings = dict(base_param_settings) if base_param_settings else None
        self._inner_count = 0
        self._max_counts = -1
        self._remainder_counts = -1

    def update_params(
        self,
        loss: Tensor,
        step_kwargs: Mapping[str, object] | None = None,
        zero_kwargs: Mapping[str, object] | None = None,
    ) -> None:
        """Take a loss: its gradients are added, and a step is made when it is time."""
        self.backward(self.scale_loss(loss))
        if self.should_update():
            self.step(**(step_kwargs or {}))
            self.zero_grad(**(zero_kwargs or {}))

    def backward(self, loss: Tensor, **kwargs: object) -> None:
        """Add the gradients of a loss."""
        loss.backward(**kwargs)  # type: ignore[no-untyped-call]
        self._inner_count += 1

    def step(self, **kwargs: object) -> None:
        """Clip and step."""
        if self.clip_grad_kwargs:
            self._clip_grad()
        self.optimizer.step(**kwargs)  # type: ignore[call-overload]

    def zero_grad(self, **kwargs: object) -> None:
        """Forget the gradients."""
        self.optimizer.zero_grad(**kwargs)  # type: ignore[arg-type]

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """The context of forward: without synchronisation until a step is due."""
        no_sync = getattr(model, "no_sync", None)
        waits = not self.should_sync() and callable(no_sync)
        context = cast("AbstractContextManager[None]", no_sync()) if waits else nullcontext()  # type: ignore[misc]
        with context:
            yield

    def should_update(self) -> bool:
        """Tell whether a step is due."""
        return self._inner_count % self._accumulative_counts == 0 or (
            self._inner_count == self._max_counts
        )

    def should_sync(self) -> bool:
        """Tell whether the next loss makes a step due."""
        return (self._inner_count + 1) % self._accumulative_counts == 0 or (
            self._inner_count + 1 == self._max_counts
        )

    def scale_loss(self, loss: Tensor) -> Tensor:
        """Divide a loss by the number of losses in its step."""
        factor = self._accumulative_counts
        full = self._max_counts - self._remainder_counts
        if factor > 1 and self._max_counts != -1 and self._inner_count >= full:
            factor = self._remainder_counts
        return loss / factor

    def initialize_count_status(self, model: nn.Module, init_counts: int, max_counts: int) -> None:
        """Say how many losses came before and how many there will be in all."""
        self._inner_count = init_counts
        self._max_counts = max_counts
        waits = any(one.grad is not None for one in model.parameters())
        if self._inner_count % self._accumulative_counts and not waits:
            _log.warning("The training is resumed between two steps; their gradients are lost.")
        self._remainder_counts = max_counts % self._accumulative_counts

    @property
    def param_groups(self) -> list[dict[str, object]]:
        """The groups; the base group too, if there is one."""
        groups = self.optimizer.param_groups
        return [*groups, self.base_param_settings] if self.base_param_settings else groups

    @property
    def defaults(self) -> dict[str, object]:
        """The optimizer's defaults."""
        return self.optimizer.defaults

    @property
    def inner_count(self) -> int:
        """Losses so far."""
        return self._inner_count

    def get_lr(self) -> dict[str, list[float]]:
        """The learning rates of the groups."""
        rates = {"lr": [cast("float", group["lr"]) for group in self.optimizer.param_groups]}
        if self.base_param_settings is not None:
            rates["base_lr"] = [cast("float", self.base_param_settings["lr"])]
        return rates

    def get_momentum(self) -> dict[str, list[float]]:
        """The momenta of the groups, the first beta of Adam among them."""
        return {
            "momentum": [
                cast(
                    "float", group.get("momentum", cast("list[float]", group.get("betas", [0]))[0])
                )
                for group in self.optimizer.param_groups
            ]
        }

    def state_dict(self) -> dict[str, object]:
        """The optimizer's state."""
        state: dict[str, object] = self.optimizer.state_dict()
        if self.base_param_settings is not None:
            state["base_param_settings"] = self.base_param_settings
        return state

    def load_state_dict(self, state_dict: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned."""
        state = dict(state_dict)
        base = state.pop("base_param_settings", None)
        if base is not None:
            self.base_param_settings = dict(cast("Mapping[str, object]", base))
        self.optimizer.load_state_dict(state)

    def _clip_grad(self) -> None:
        parameters = [
            parameter
            for group in self.optimizer.param_groups
            for parameter in group["params"]
            if parameter.requires_grad and parameter.grad is not None
        ]
        if not parameters:
            return
        if self.clip_type == "value":
            nn.utils.clip_grad_value_(parameters, **self.clip_grad_kwargs)  # type: ignore[arg-type]
            return
        norm = nn.utils.clip_grad_norm_(parameters, **self.clip_grad_kwargs)  # type: ignore[arg-type]
        MessageHub.get_current_instance().update_scalar("train/grad_norm", norm)


class AmpOptimWrapper(OptimWrapper):
    """The same in mixed precision, with a scaled loss in float16.

    Args:
        loss_scale: ``"dynamic"``, a number, or the arguments of torch's ``GradScaler``.
        dtype: ``"float16"`` or ``"bfloat16"``; float16 by default.
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
            options = {"init_scale": float(loss_scale), "growth_interval": 2**31 - 1}
        elif loss_scale != "dynamic":
            raise TypeError(f"loss_scale must be a number, a dict or 'dynamic', not {loss_scale!r}")
        scales = self.cast_dtype is not torch.bfloat16
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.loss_scaler = torch.amp.GradScaler(self.device, enabled=scales, **options)  # type: ignore[arg-type]

    def backward(self, loss: Tensor, **kwargs: object) -> None:
        self.loss_scaler.scale(loss).backward(**kwargs)  # type: ignore[no-untyped-call]
        self._inner_count += 1

    def step(self, **kwargs: object) -> None:
        if self.clip_grad_kwargs:
            self.loss_scaler.unscale_(self.optimizer)
            self._clip_grad()
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
    """Several wrapped optimizers by name, for a model that steps them itself."""

    def __init__(self, **optim_wrapper_dict: OptimWrapper) -> None:
        for name, one in optim_wrapper_dict.items():
            if not isinstance(one, OptimWrapper):
                raise AssertionError(f"`{name}` must be an OptimWrapper, but got {type(one)}")
        self.optim_wrappers = optim_wrapper_dict

    def update_params(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError(
            "OptimWrapperDict: call update_params of one of its wrappers, in train_step."
        )

    backward = step = zero_grad = update_params

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        if self.optim_wrappers:
            raise NotImplementedError("OptimWrapperDict: use optim_context of one of its wrappers.")
        yield

    def initialize_count_status(self, model: nn.Module, init_counts: int, max_counts: int) -> None:
        return None  # Each of them counts for itself.

    @property
    def param_groups(self) -> dict[str, list[dict[str, object]]]:  # type: ignore[override]
        return {name: one.param_groups for name, one in self.items()}

    def get_lr(self) -> dict[str, list[float]]:
        return {f"{name}.lr": one.get_lr()["lr"] for name, one in self.items()}

    def get_momentum(self) -> dict[str, list[float]]:
        return {f"{name}.momentum": one.get_momentum()["momentum"] for name, one in self.items()}

    def state_dict(self) -> dict[str, object]:
        return {name: one.state_dict() for name, one in self.items()}

    def load_state_dict(self, state_dict: Mapping[str, object]) -> None:
        for name, state in state_dict.items():
            self[name].load_state_dict(cast("Mapping[str, object]", state))

    def items(self) -> Iterator[tuple[str, OptimWrapper]]:
        """Yield names and wrappers."""
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
