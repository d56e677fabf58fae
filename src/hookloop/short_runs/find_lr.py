"""Find a learning rate: a short training with a rising rate, after which nothing has changed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookloop.data.random.states import seed_all
from hookloop.errors import DataError, HookError, ModelError
from hookloop.runs.files import write_bytes
from hookloop.short_runs.borrowed import borrowed
from hookloop.trainer.inputs import check_count, check_trainable, check_updates
from hookloop.trainer.several_ranks import agree_on_order

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from hookloop.trainer.trainer import Trainer

DIVERGED = 3.0
"""How far above its lowest value the loss ends the search, in units of the first loss."""


@dataclass(frozen=True)
class RateSearch:
    """What a search has found.

    Attributes:
        rates: The learning rate of each iteration, that of the group with the highest one.
        losses: The training loss of each iteration.
        smoothed: The same, smoothed from both sides.
        suggestion: The rate at which the smoothed loss falls fastest, per decade and on the way to
            its lowest value; None if it does not fall.
        overrides: What to write into a config: the suggested rate of each optimizer.
        factor: What all rates are multiplied with to get there; None without a suggestion.
        ended: Why the search ended.
        has_groups: Whether an optimizer has groups with different rates.
        again: With which other arguments to search again, where this search has not shown enough.
    """

    rates: list[float]
    losses: list[float]
    smoothed: list[float] = field(repr=False)
    suggestion: float | None
    overrides: dict[str, float]
    factor: float | None
    ended: str
    has_groups: bool = False
    again: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        found = "no suggestion" if self.suggestion is None else f"suggestion {self.suggestion:.2g}"
        again = ", ".join(f"{name}={value:g}" for name, value in self.again.items())
        return (
            f"<RateSearch: {found}; {len(self.rates)} rates, {self.ended}"
            f"{f'; search again with find_lr({again})' if again else ''}>"
        )

    def save_png(self, path: str | Path) -> None:
        """Draw the loss over the learning rate; needs matplotlib, the extra ``plots``."""
        from hookloop.hooks.showing._figures import new_figure, require_plots
        from hookloop.writers.pixels import encode_png, to_pixels

        require_plots("find_lr")
        figure = new_figure(7, 4)
        axes = figure.subplots()
        axes.plot(self.rates, self.losses, color="0.8", label="loss")
        axes.plot(self.rates, self.smoothed, label="smoothed")
        if self.suggestion is not None:
            axes.axvline(self.suggestion, linestyle=":", label=f"suggested: {self.suggestion:.2g}")
        finite = [value for value in self.smoothed if math.isfinite(value)]
        if finite:  # What follows the divergence would flatten the rest.
            axes.set_ylim(*_range_of(finite))
        axes.set(xscale="log", xlabel="learning rate", ylabel="training loss")
        axes.legend()
        write_bytes(Path(path), encode_png(to_pixels(figure)), durable=False)


def find_lr(
    trainer: Trainer, *, first: float = 1e-7, last: float = 10.0, iters: int = 100
) -> RateSearch:
    """Train with a rate that rises exponentially, and suggest the one at which the loss falls most.

    The state of the run is copied to memory and restored afterwards: a training that follows ends
    with the same bits as without the search. Nothing is written. No hook acts, so what hooks do to
    batches or gradients is left out, and schedules do not step. The rates of all groups of all
    optimizers rise together and keep their ratios. Several updates per iteration are judged by the
    sum of their losses. On many ranks, all of them call this, and the losses are those of the
    global batches.

    Args:
        trainer: A trainer; weights of its ``load_from`` are loaded for the search.
        first: The rate in the first iteration, of the group with the highest rate.
        last: The same for the last iteration.
        iters: How many iterations; fewer if the loss diverges.

    Raises:
        ModelError: If there is no rate to change.
        DataError: If the data can be read only once.

    Example:
        >>> from hookloop.testing import tiny_trainer
        >>> search = find_lr(tiny_trainer(), last=100.0, iters=40)
        >>> len(search.rates) <= 40, search.overrides.keys()
        (True, dict_keys(['optimizer.lr']))
    """
    if not 0 < first < last < math.inf:
        raise ModelError(f"The rates must rise from above 0, not from {first} to {last}.")
    check_count("iters", iters)
    _check(trainer)
    curve = _Curve()
    with borrowed(trainer) as iterations:
        rates = _Rates(trainer.run.optimizers)
        _begin(trainer)
        groups = iterations.groups()
        for number in range(iters):
            rate = first * (last / first) ** (number / max(1, iters - 1))
            rates.set(rate)
            loss = iterations.make(next(groups))
            if loss is not None and not curve.add(rate, loss):
                break
    found = curve.result(rates)  # Only now, when the rates are those of the training again.
    return replace(found, again=propose(found.rates, found.suggestion, first, last, iters))


def _begin(trainer: Trainer) -> None:
    """Start with what the training will start with."""
    run = trainer.run
    if run._internals.seed is not None and run.progress.iter == 0:
        seed_all(run._internals.seed)
    agree_on_order(run, is_new=run.progress.iter == 0)
    if (weights := trainer._session.start.weights) is not None:
        weights.load_into(run.model)


def _check(trainer: Trainer) -> None:
    """Reject what cannot be searched."""
    run = trainer.run
    if trainer._session.start.is_resuming:
        raise ModelError(
            "find_lr cannot search in a run that is to be resumed, because its checkpoint is not "
            "loaded yet: leave out resume=, or begin with its weights, load_from=."
        )
    trainer.check_hooks()
    for hook in run.hooks:
        if any(hook.change_update(run, one) is not one for one in trainer._updates):
            raise HookError(
                f"The hook '{hook.name}' changes the update, and no hook acts in find_lr: leave it "
                "out for the search.",
                hook=hook.name,
            )
    check_trainable(run)
    check_updates(run, trainer._updates)
    if run.train_data is not None and run.train_data.is_one_pass:
        raise DataError(
            f"{run.train_data.name} can be read only once, and find_lr would use it up: give a "
            "list or a DataLoader.",
            argument="train_data",
        )


class _Rates:
    """The learning rates of all groups, which keep their ratios.

    Args:
        optimizers: By name.
    """

    def __init__(self, optimizers: dict[str, Optimizer]) -> None:
        self._optimizers = optimizers
        # A schedule has already lowered the rate of a warm-up, and keeps the one that was given.
        self._given = [
            (group, _rate_of(group))
            for optimizer in optimizers.values()
            for group in optimizer.param_groups
        ]
        self.highest = max((rate for _, rate in self._given), default=0.0)
        if not self.highest > 0:
            raise ModelError(
                "All learning rates are 0, so their ratios are unknown: give any other rate.",
                argument="optimizer",
            )

    @property
    def have_groups(self) -> bool:
        """Whether an optimizer has groups with different rates."""
        return any(len(_rates_of(one)) > 1 for one in self._optimizers.values())

    def set(self, highest: float) -> None:
        """Give the group with the highest rate this one, and the others in proportion."""
        for group, given in self._given:
            rate = highest * given / self.highest
            old = group["lr"]
            # A new tensor: the old one is also among the defaults of the optimizer.
            group["lr"] = torch.full_like(old, rate) if isinstance(old, Tensor) else rate

    def overrides(self, factor: float) -> dict[str, float]:
        """Return the rate of each optimizer, times a factor, by its key in a config."""
        keys = {
            name: "optimizer.lr" if len(self._optimizers) == 1 else f"optimizer.{name}.lr"
            for name in self._optimizers
        }
        return {
            keys[name]: float(f"{self._own_rate(one) * factor:.2g}")
            for name, one in self._optimizers.items()
        }

    def _own_rate(self, optimizer: Optimizer) -> float:
        """Return the rate that a config gives to an optimizer as a whole."""
        rates = _rates_of(optimizer)
        # A schedule such as OneCycleLR has set others than those of the config.
        return rates.pop() if len(rates) == 1 else float(optimizer.defaults.get("lr", self.highest))


def _rate_of(group: dict[str, Any]) -> float:
    return float(group.get("initial_lr", group["lr"]))


def _rates_of(optimizer: Optimizer) -> set[float]:
    return {_rate_of(group) for group in optimizer.param_groups}


class _Curve:
    """The loss over the rate, as it grows."""

    def __init__(self) -> None:
        self._rates: list[float] = []
        self._losses: list[float] = []
        self._running = 0.0
        self._lowest = math.inf
        self._ended = "all iterations were made"

    def add(self, rate: float, loss: float) -> bool:
        """Add an iteration; return whether the search continues."""
        if not math.isfinite(loss):
            self._ended = f"the loss was not finite at {rate:.2g}"
            return False
        self._rates.append(rate)
        self._losses.append(loss)
        count = len(self._losses)
        self._running = SMOOTHING * self._running + (1 - SMOOTHING) * loss
        running = self._running / (1 - SMOOTHING**count)
        self._lowest = min(self._lowest, running)
        if count >= FEWEST and running > self._lowest + DIVERGED * self._scale:
            self._ended = f"the loss diverged at {rate:.2g}"
            return False
        return True

    @property
    def _scale(self) -> float:
        """How large a difference counts: a loss may be negative, or begin at 0."""
        return max(abs(self._losses[0]), self._losses[0] - self._lowest)

    def result(self, rates: _Rates) -> RateSearch:
        """Smooth the curve, and find where it falls fastest."""
        smoothed = (
            smooth(self._losses, self._lowest + DIVERGED * self._scale) if self._losses else []
        )
        found = steepest(self._rates, smoothed)
        factor = None if found is None else found / rates.highest
        return RateSearch(
            self._rates,
            self._losses,
            smoothed,
            found,
            {} if factor is None else rates.overrides(factor),
            factor,
            self._ended,
            rates.have_groups,
        )


def _range_of(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


SMOOTHING = 0.8
"""How much of the smoothed loss is that of its neighbours."""
FEWEST = 10
"""Iterations before a search may end early, and that a suggestion needs."""
BEGINS = 0.1
"""The part of the whole fall after which the loss counts as falling."""
NEAR = 0.5
"""How far around a rate its slope is measured, in decades."""


def smooth(losses: list[float], highest: float) -> list[float]:
    """Average each loss with those before and after it, so that the curve is not shifted."""
    clipped = [min(loss, highest) for loss in losses]
    both = np.array([_running_means(clipped), _running_means(clipped[::-1])[::-1]])
    return [float(value) for value in both.mean(0)]


def _running_means(values: list[float]) -> list[float]:
    total, weight, means = 0.0, 0.0, []
    for value in values:
        total = SMOOTHING * total + (1 - SMOOTHING) * value
        weight = SMOOTHING * weight + (1 - SMOOTHING)
        means.append(total / weight)
    return means


def steepest(rates: list[float], losses: list[float]) -> float | None:
    """Return the rate at which the loss falls fastest per decade, on its way to its lowest value.

    What comes before that way is noise: rates so small that one batch differs from the next by
    more than an update changes.
    """
    if len(rates) < FEWEST:
        return None
    values, lowest = np.array(losses), int(np.argmin(losses))
    flat = max(1, len(losses) // 10)
    plateau = float(values[:flat].mean())
    level = plateau - BEGINS * (plateau - values[lowest])
    above = np.flatnonzero(values[:lowest] >= level)
    # A loss that is lowest among the smallest rates is noise, and rises from there.
    if lowest <= flat or len(above) == 0 or not values[lowest] < plateau:
        return None
    slopes = _slopes(np.log10(rates), values)
    begin = int(above[-1])
    return rates[begin + int(np.argmin(slopes[begin : lowest + 1]))]


def propose(
    rates: list[float], suggestion: float | None, first: float, last: float, iters: int
) -> dict[str, float]:
    """Return with what to search again, where a search has not shown enough: its other arguments.

    Args:
        rates: The rates of the iterations that were made.
        suggestion: What the search suggests, if anything.
        first: The rate that it began with.
        last: The rate that it was to end with.
        iters: How many iterations it was to make.

    >>> propose([1e-9, 1e-8, 1e-7], None, 1e-9, 1e-7, 3)
    {'last': 1.0, 'iters': 100}
    >>> propose([1e-7, 1e-3, 10.0], 1e-3, 1e-7, 10.0, 3)
    {}
    """
    ended_early = len(rates) < iters
    reached = rates[-1] if rates else first
    if suggestion is not None:
        # A loss that falls up to the last rate may fall faster at one above it.
        is_last = not ended_early and suggestion >= 0.7 * last
        return {"last": _rounded(last * 100)} if is_last else {}
    again: dict[str, float] = {}
    if ended_early:  # It rose: what is good lies below.
        again = {"first": _rounded(first / 1000), "last": _rounded(reached)}
    elif last < 1:
        again = {"last": 1.0}
    # The fall may be hidden by how much one batch differs from the next.
    return {**again, "iters": max(100, 3 * iters)}


def _rounded(value: float) -> float:
    return float(f"{value:.1g}")


def _slopes(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the slope at each point, of the line that fits its surroundings best.

    The difference of two neighbours would follow a single hard batch: the fall after it is steeper
    than any that the rate brings about.
    """
    slopes = np.empty_like(y)
    for index in range(len(x)):
        near = np.abs(x - x[index]) <= NEAR
        near[max(0, index - 2) : index + 3] = True
        slopes[index] = np.polyfit(x[near], y[near], 1)[0]
    return slopes
