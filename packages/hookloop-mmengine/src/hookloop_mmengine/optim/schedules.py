"""MMEngine's schedulers: each for any parameter, the learning rate and the momentum."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from hookloop_mmengine.optim.base_scheduler import INF, _ParamScheduler, by_lr_and_momentum

if TYPE_CHECKING:
    from torch.optim import Optimizer


class ConstantParamScheduler(_ParamScheduler):
    """Multiply the value by a factor until the end of the window."""

    def __init__(
        self, optimizer: Optimizer, param_name: str, factor: float = 1 / 3, **window: object
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor should between 0 and 1.")
        # Before the base class, here and below: its constructor makes the first step.
        self.factor = factor
        super().__init__(optimizer, param_name, **window)  # type: ignore[arg-type]

    def values(self, current: Sequence[float]) -> list[float]:
        if self.last_step == 0:
            return [value * self.factor for value in current]
        # Restored by a factor and not from the start: other schedules may have changed the value
        # since.
        if self.last_step == self.total_iters:
            # Not value / factor, which differs from MMEngine in the last bit.
            return [value * (1.0 / self.factor) for value in current]
        return list(current)


class ExponentialParamScheduler(_ParamScheduler):
    """Multiply the value by a factor at each step."""

    def __init__(
        self, optimizer: Optimizer, param_name: str, gamma: float, **window: object
    ) -> None:
        self.gamma = gamma
        super().__init__(optimizer, param_name, **window)  # type: ignore[arg-type]

    def values(self, current: Sequence[float]) -> list[float]:
        # The first step is made at construction and leaves the value as it was given.
        factor = 1.0 if self.last_step == 0 else self.gamma
        return [value * factor for value in current]


class StepParamScheduler(_ParamScheduler):
    """Multiply the value by a factor at every ``step_size``-th step."""

    scaled = ("step_size",)

    def __init__(
        self,
        optimizer: Optimizer,
        param_name: str,
        step_size: int,
        gamma: float = 0.1,
        **window: object,
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, param_name, **window)  # type: ignore[arg-type]

    def values(self, current: Sequence[float]) -> list[float]:
        if self.last_step == 0 or self.last_step % self.step_size:
            return list(current)
        return [value * self.gamma for value in current]


class MultiStepParamScheduler(_ParamScheduler):
    """Multiply the value by a factor at each milestone."""

    scaled = ("milestones",)

    def __init__(
        self,
        optimizer: Optimizer,
        param_name: str,
        milestones: Sequence[int],
        gamma: float = 0.1,
        **window: object,
    ) -> None:
        # A milestone that is named twice multiplies twice; a plain dict can be saved.
        self.milestones = dict(Counter(milestones))
        self.gamma = gamma
        super().__init__(optimizer, param_name, **window)  # type: ignore[arg-type]

    def values(self, current: Sequence[float]) -> list[float]:
        factor = self.gamma ** self.milestones.get(self.last_step, 0)
        return [value * factor for value in current]


class LinearParamScheduler(_ParamScheduler):
    """Change the factor linearly from one value to another, for example for a warm-up."""

    def __init__(
        self,
        optimizer: Optimizer,
        param_name: str,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        **window: object,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor should between 0 and 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor should between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        super().__init__(optimizer, param_name, **window)  # type: ignore[arg-type]

    def values(self, current: Sequence[float]) -> list[float]:
        if self.last_step == 0:
            return [value * self.start_factor for value in current]
        rise = self.end_factor - self.start_factor
        # The ratio of two points on the line, because each step changes the value before it.
        before = self.total_iters * self.start_factor + (self.last_step - 1) * rise
        return [value * (1 + rise / before) for value in current]


class CosineAnnealingParamScheduler(_ParamScheduler):
    """Follow half a cosine down to ``eta_min``."""

    scaled = ("T_max",)

    def __init__(
        self,
        optimizer: Optimizer,
        param_name: str,
        T_max: int | None = None,
        eta_min: float | None = None,
        eta_min_ratio: float | None = None,
        begin: int = 0,
        end: int = INF,
        **window: object,
    ) -> None:
        if eta_min is not None and eta_min_ratio is not None:
            raise AssertionError("Either `eta_min` or `eta_min_ratio` should be specified.")
        self.T_max = T_max or end - begin
        self.eta_min = eta_min
        self.eta_min_ratio = eta_min_ratio
        super().__init__(optimizer, param_name, begin, end, **window)  # type: ignore[arg-type]

    def values(self, current: Sequence[float]) -> list[float]:
        return [
            self._next(value, base) for value, base in zip(current, self.base_values, strict=True)
        ]

    def _next(self, value: float, base: float) -> float:
        least = lowest_value(base, self.eta_min, self.eta_min_ratio)
        step, period = self.last_step, self.T_max
        if step == 0:
            return value
        # After the bottom of the cosine, the ratio below would divide by 0.
        if (step - 1 - period) % (2 * period) == 0:
            return value + (base - least) * (1 - math.cos(math.pi / period)) / 2
        now, before = math.cos(math.pi * step / period), math.cos(math.pi * (step - 1) / period)
        return (1 + now) / (1 + before) * (value - least) + least


class PolyParamScheduler(_ParamScheduler):
    """Follow a power of the remaining steps down to ``eta_min``."""

    def __init__(
        self,
        optimizer: Optimizer,
        param_name: str,
        eta_min: float = 0,
        power: float = 1,
        **window: object,
    ) -> None:
        self.power = power
        self.eta_min = eta_min
        super().__init__(optimizer, param_name, **window)  # type: ignore[arg-type]

    def values(self, current: Sequence[float]) -> list[float]:
        if self.last_step == 0:
            return list(current)
        # Again the ratio of this step to the one before it.
        share = (1 - 1 / (self.total_iters - self.last_step + 1)) ** self.power
        return [(value - self.eta_min) * share + self.eta_min for value in current]


class CosineRestartParamScheduler(_ParamScheduler):
    """Follow a cosine down to ``eta_min`` in each of several periods."""

    scaled = ("periods",)

    def __init__(
        self,
        optimizer: Optimizer,
        param_name: str,
        periods: Sequence[int],
        restart_weights: Sequence[float] = (1,),
        eta_min: float | None = None,
        eta_min_ratio: float | None = None,
        **window: object,
    ) -> None:
        if (eta_min is None) == (eta_min_ratio is None):
            raise AssertionError("Either `eta_min` or `eta_min_ratio` should be specified.")
        if len(periods) != len(restart_weights):
            raise AssertionError("periods and restart_weights should have the same length.")
        self.periods = list(periods)
        self.restart_weights = list(restart_weights)
        self.cumulative_periods = list(accumulate(periods))
        self.eta_min = eta_min
        self.eta_min_ratio = eta_min_ratio
        super().__init__(optimizer, param_name, **window)  # type: ignore[arg-type]

    def values(self, current: Sequence[float]) -> list[float]:
        # Right: the step at the end of a period is the first of the next one.
        index = bisect_right(self.cumulative_periods, self.last_step)
        if index == len(self.periods):
            return list(current)  # After the last period the value stays.
        start = self.cumulative_periods[index - 1] if index else 0  # [-1] would be the last.
        done = min((self.last_step - start) / self.periods[index], 1)
        share = 0.5 * (math.cos(math.pi * done) + 1)
        weight = self.restart_weights[index]
        least = [lowest_value(base, self.eta_min, self.eta_min_ratio) for base in self.base_values]
        return [
            low + share * (base * weight - low)
            for base, low in zip(self.base_values, least, strict=True)
        ]


class OneCycleParamScheduler(_ParamScheduler):
    """Rise to ``eta_max`` and fall far below the start: the 1cycle policy."""

    scaled = ("total_steps",)

    def __init__(  # noqa: PLR0913, PLR0917 - MMEngine's signature
        self,
        optimizer: Optimizer,
        param_name: str,
        eta_max: float = 0,
        total_steps: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        begin: int = 0,
        end: int = INF,
        **window: object,
    ) -> None:
        self.eta_max = eta_max
        self.total_steps = total_steps or end - begin
        self.anneal_strategy = anneal_strategy
        first = eta_max / div_factor
        last = first / final_div_factor
        # Torch's formulas for the ends of the phases.
        rise = float(pct_start * self.total_steps) - 1
        if three_phase:
            fall = float(2 * pct_start * self.total_steps) - 2
            self.phases = [(rise, first, eta_max), (fall, eta_max, first)]
            self.phases.append((self.total_steps - 1, first, last))
        else:
            self.phases = [(rise, first, eta_max), (self.total_steps - 1, eta_max, last)]
        # The cycle starts at its own value, whatever the optimizer was given.
        # In the optimizer itself, because a wrapper may add a group that only shows the rate.
        for group in getattr(optimizer, "optimizer", optimizer).param_groups:
            group[f"initial_{param_name}"] = first
        super().__init__(optimizer, param_name, begin, end, **window)  # type: ignore[arg-type]

    def values(self, current: Sequence[float]) -> list[float]:
        if self.last_step > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_step} times; there are {self.total_steps} steps."
            )
        phase_start = 0.0
        for phase_end, start, goal in self.phases:
            # The last phase ends one step before the last one, which therefore belongs to it as
            # well.
            if self.last_step <= phase_end or phase_end == self.phases[-1][0]:
                done = (self.last_step - phase_start) / (phase_end - phase_start)
                return [self._interpolate(start, goal, done)] * len(current)
            phase_start = phase_end
        return list(current)

    def _interpolate(self, start: float, goal: float, done: float) -> float:
        if self.anneal_strategy == "linear":
            return (goal - start) * done + start
        return goal + (start - goal) / 2 * (1 + math.cos(math.pi * done))


class ReduceOnPlateauParamScheduler(_ParamScheduler):
    """Multiply the value by a factor when a metric has not improved for a while."""

    need_val_args = True

    def __init__(  # noqa: PLR0913, PLR0917 - MMEngine's signature
        self,
        optimizer: Optimizer,
        param_name: str,
        monitor: str = "loss",
        rule: Literal["less", "greater"] = "less",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_rule: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_value: float = 0.0,
        eps: float = 1e-8,
        **window: object,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.monitor = monitor
        self.rule = rule
        self.factor = factor
        self.patience = patience
        # With its sign, one formula serves both rules.
        self.threshold = threshold if rule == "greater" else -threshold
        self.threshold_rule = threshold_rule
        self.cooldown = cooldown
        self.min_value = min_value
        self.eps = eps
        self.best = -math.inf if rule == "greater" else math.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0
        super().__init__(optimizer, param_name, **window)  # type: ignore[arg-type]

    def values(self, current: Sequence[float]) -> list[float]:
        if self.num_bad_epochs <= self.patience:
            return list(current)
        self.cooldown_counter = self.cooldown
        self.num_bad_epochs = 0
        lower = [max(value * self.factor, self.min_value) for value in current]
        return [
            # Changes below eps are noise.
            new if old - new > self.eps else old
            for old, new in zip(current, lower, strict=True)
        ]

    def step(self, metrics: Mapping[str, float] | float | None = None) -> None:
        if metrics is not None:
            self._count_bad_epochs(metrics)
        super().step()

    def _count_bad_epochs(self, metrics: Mapping[str, float] | float) -> None:
        if isinstance(metrics, Mapping):
            if self.monitor not in metrics:
                raise KeyError(f"{self.monitor} is not in the metrics: {', '.join(metrics)}")
            metrics = metrics[self.monitor]
        if self._is_better(float(metrics)):
            self.best = float(metrics)
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        # Bad epochs right after a reduction do not count.
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0

    def _is_better(self, value: float) -> bool:
        if math.isinf(self.best):  # With a relative threshold of 1, inf * 0 would be NaN.
            goal = self.best
        elif self.threshold_rule == "rel":
            goal = self.best * (1 + self.threshold)
        else:
            goal = self.best + self.threshold
        return value < goal if self.rule == "less" else value > goal


def lowest_value(base: float, eta_min: float | None, ratio: float | None) -> float:
    """Return the value at which the annealing ends."""
    return base * ratio if ratio is not None else eta_min or 0.0


ConstantLR, ConstantMomentum = by_lr_and_momentum(ConstantParamScheduler)
CosineAnnealingLR, CosineAnnealingMomentum = by_lr_and_momentum(CosineAnnealingParamScheduler)
CosineRestartLR, CosineRestartMomentum = by_lr_and_momentum(CosineRestartParamScheduler)
ExponentialLR, ExponentialMomentum = by_lr_and_momentum(ExponentialParamScheduler)
LinearLR, LinearMomentum = by_lr_and_momentum(LinearParamScheduler)
MultiStepLR, MultiStepMomentum = by_lr_and_momentum(MultiStepParamScheduler)
OneCycleLR, _OneCycleMomentum = by_lr_and_momentum(OneCycleParamScheduler)
PolyLR, PolyMomentum = by_lr_and_momentum(PolyParamScheduler)
ReduceOnPlateauLR, ReduceOnPlateauMomentum = by_lr_and_momentum(ReduceOnPlateauParamScheduler)
StepLR, StepMomentum = by_lr_and_momentum(StepParamScheduler)
