"""The base of MMEngine's parameter schedulers: a window of steps, and one value per group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Self, cast

if TYPE_CHECKING:
    from torch.optim import Optimizer

INF = int(1e9)


class _ParamScheduler:
    """Changes one parameter of an optimizer's groups, within the steps ``begin <= step < end``.

    Each step follows from the value before it, so several schedulers can act on one parameter.

    Args:
        optimizer: An optimizer, or a wrapped one.
        param_name: ``"lr"``, ``"momentum"``, or any other entry of the groups.
        begin: The first step at which it acts.
        end: The step at which it ceases to.
        last_step: For a scheduler that goes on: the step before.
        by_epoch: Whether epochs are counted, or iterations.
    """

    need_val_args = False
    scaled: ClassVar[tuple[str, ...]] = ()
    """Arguments that count steps, and grow when epochs are turned into iterations."""

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
        for group in self.optimizer.param_groups:
            if param_name not in group and param_name != "momentum":
                raise KeyError(f"{param_name} is not in the parameter groups.")
            if last_step == -1:
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
        self.step()

    @property
    def total_iters(self) -> int:
        """Steps from the first value to the last."""
        return self.end - self.begin - 1

    def values(self, current: Sequence[float]) -> list[float]:
        """Return the values of this step; ``last_step`` is its number within the window."""
        raise NotImplementedError

    def step(self) -> None:
        """Go one step on; outside of the window nothing changes."""
        self._global_step += 1
        groups = self.optimizer.param_groups
        if self.begin <= self._global_step < self.end:
            self.last_step += 1
            new = self.values([self._value(group) for group in groups])
            for group, value in zip(groups, new, strict=True):
                self._set(group, value)
        self._last_value = [self._value(group) for group in groups]

    def get_last_value(self) -> list[float]:
        """Return the values set last."""
        return self._last_value

    def state_dict(self) -> dict[str, object]:
        """Return where it stands and its shape."""
        return {key: value for key, value in vars(self).items() if key != "optimizer"}

    def load_state_dict(self, state_dict: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned."""
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
        """Make one that counts iterations of what is said in epochs."""
        if not by_epoch:
            raise AssertionError("Only epoch-based parameter schedulers can be converted.")
        if epoch_length is None or epoch_length <= 0:
            raise AssertionError(f"epoch_length must be a positive integer, not {epoch_length}.")
        for name in cls.scaled:
            kwargs[name] = _times(kwargs.get(name), epoch_length)
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        end = end if end == INF else end * epoch_length
        make = cast("Callable[..., Self]", cls)
        return make(*args, begin=begin * epoch_length, end=end, by_epoch=False, **kwargs)

    def _value(self, group: Mapping[str, object]) -> float:
        if self.param_name == "momentum" and "betas" in group:  # Adam and its kind.
            return cast("tuple[float, ...]", group["betas"])[0]
        return cast("float", group[self.param_name])

    def _set(self, group: dict[str, object], value: float) -> None:
        if self.param_name == "momentum" and "betas" in group:
            group["betas"] = (value, *cast("tuple[float, ...]", group["betas"])[1:])
        else:
            group[self.param_name] = value


def _times(value: object, length: int) -> object:
    if isinstance(value, list | tuple):
        return [one * length for one in value]
    return value * length if isinstance(value, int) else value


def by_lr_and_momentum(base: type) -> tuple[type, type]:
    """Make the two usual forms of a scheduler: of the learning rate and of the momentum."""
    stem = base.__name__.removesuffix("ParamScheduler")
    return tuple(  # type: ignore[return-value]
        _fixed(base, f"{stem}{suffix}", param)
        for suffix, param in (("LR", "lr"), ("Momentum", "momentum"))
    )


def _fixed(base: type, name: str, param: str) -> type:
    def __init__(self: object, optimizer: object, *args: object, **kwargs: object) -> None:
        base.__init__(self, optimizer, param, *args, **kwargs)  # type: ignore[misc]

    return type(name, (base,), {"__init__": __init__, "__doc__": base.__doc__})
