"""The base class of MMEngine's parameter schedulers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Self, cast

if TYPE_CHECKING:
    from torch.optim import Optimizer

INF = int(1e9)


class _ParamScheduler:
    """Change one parameter of an optimizer's groups at the steps ``begin <= step < end``.

    Each value is computed from the one before it, so that several schedulers can act on one
    parameter.

    Args:
        optimizer: An optimizer, or a wrapped one.
        param_name: ``"lr"``, ``"momentum"``, or any other entry of the groups.
        begin: The first step of the window.
        end: The step after the last one of the window.
        last_step: The last step so far, for a scheduler that continues; -1 for a new one.
        by_epoch: Whether it steps after epochs, and not after iterations.
        verbose: Accepted for its name; it has no effect.
    """

    need_val_args = False
    scaled: ClassVar[tuple[str, ...]] = ()
    """Arguments that count steps; they are multiplied when epochs become iterations."""

    def __init__(
        self,
        optimizer: Optimizer,
        param_name: str,
        begin: int = 0,
        end: int = INF,
        last_step: int = -1,
        by_epoch: bool = True,
        verbose: bool = False,
    ) -> None:
        if begin < 0 or end <= begin:
            raise ValueError(f"end should be larger than begin, but got begin={begin}, end={end}")
        self.optimizer = getattr(optimizer, "optimizer", optimizer)
        self.param_name = param_name
        # The initial value is kept in the group, where a checkpoint of the optimizer has it.
        for group in self.optimizer.param_groups:
            if param_name not in group and param_name != "momentum":
                raise KeyError(f"{param_name} is not in the parameter groups.")
            if last_step == -1:
                # Only if it is missing: an earlier scheduler may have changed the current value
                # already.
                group.setdefault(f"initial_{param_name}", self._value(group))
        self.base_values = [
            cast("float", group[f"initial_{param_name}"]) for group in self.optimizer.param_groups
        ]
        self.begin = begin
        self.end = end
        self.by_epoch = by_epoch
        self.last_step = last_step
        self.verbose = verbose
        self._global_step = -1
        self._last_value: list[float] = []
        # The first step sets the first value, before any training.
        self.step()

    @property
    def total_iters(self) -> int:
        """The number of steps from the first value to the last."""
        return self.end - self.begin - 1

    def values(self, current: Sequence[float]) -> list[float]:
        """Return the values of this step; ``last_step`` is its index in the window."""
        return self._get_value()

    def _get_value(self) -> list[float]:
        """Return the values of this step: the method that schedulers of projects define."""
        raise NotImplementedError("Subclass _ParamScheduler and define _get_value().")

    def step(self) -> None:
        """Make one step; outside of the window nothing changes."""
        self._global_step += 1
        groups = self.optimizer.param_groups
        if self.begin <= self._global_step < self.end:
            self.last_step += 1
            new = self.values([self._value(group) for group in groups])
            for group, value in zip(groups, new, strict=True):
                self._set(group, value)
        self._last_value = [self._value(group) for group in groups]

    def get_last_value(self) -> list[float]:
        """Return the values of the last step."""
        return self._last_value

    def state_dict(self) -> dict[str, object]:
        """Return its position and its settings."""
        # The optimizer has a state of its own, which checkpoints hold elsewhere.
        return {key: value for key, value in vars(self).items() if key != "optimizer"}

    def load_state_dict(self, state_dict: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""
        vars(self).update(state_dict)

    @classmethod
    def build_iter_from_epoch(
        cls,
        *args: object,
        begin: int = 0,
        end: int = INF,
        by_epoch: bool = True,
        epoch_length: int | None = None,
        **kwargs: object,
    ) -> Self:
        """Return a scheduler that counts iterations, from arguments in epochs."""
        if not by_epoch:
            raise AssertionError("Only epoch-based parameter schedulers can be converted.")
        if epoch_length is None or epoch_length <= 0:
            raise AssertionError(f"epoch_length must be a positive integer, not {epoch_length}.")
        for name in cls.scaled:
            kwargs[name] = _times(kwargs.get(name), epoch_length)
        # None means that the default is computed later, from begin and end.
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        # An open window stays open.
        end = end if end == INF else end * epoch_length
        factory = cast("Callable[..., Self]", cls)
        return factory(*args, begin=begin * epoch_length, end=end, by_epoch=False, **kwargs)

    def _value(self, group: Mapping[str, object]) -> float:
        if self.param_name == "momentum" and "betas" in group:  # Adam's momentum.
            return cast("tuple[float, ...]", group["betas"])[0]
        return cast("float", group[self.param_name])

    def _set(self, group: dict[str, object], value: float) -> None:
        if self.param_name == "momentum" and "betas" in group:
            group["betas"] = (value, *cast("tuple[float, ...]", group["betas"])[1:])
        else:
            group[self.param_name] = value


def _times(value: object, length: int) -> object:
    if isinstance(value, list | tuple):
        return [step * length for step in value]
    return value * length if isinstance(value, int) else value


def by_lr_and_momentum(base: type) -> tuple[type, type]:
    """Return two subclasses: one for the learning rate and one for the momentum."""
    stem = base.__name__.removesuffix("ParamScheduler")
    return tuple(  # type: ignore[return-value]
        _fixed(base, f"{stem}{suffix}", param)
        for suffix, param in (("LR", "lr"), ("Momentum", "momentum"))
    )


def _fixed(base: type, name: str, param: str) -> type:
    def __init__(self: object, optimizer: object, *args: object, **kwargs: object) -> None:
        base.__init__(self, optimizer, param, *args, **kwargs)  # type: ignore[misc]

    return type(name, (base,), {"__init__": __init__, "__doc__": base.__doc__})
