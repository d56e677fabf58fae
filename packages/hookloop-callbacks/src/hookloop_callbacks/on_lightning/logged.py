"""What callbacks log, and the metrics that they read: both live in the run's metric store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop import Run

# Keys that every record of hookloop has. Loggers of Lightning are often given an `epoch`.
_TAKEN = ("time", "phase", "span", "iter", "epoch")


class Metrics(dict[str, Tensor]):
    """Metrics by Lightning's names; ``val/loss`` and ``val_loss`` mean the same.

    >>> metrics = Metrics({"val_loss": torch.tensor(0.5)})
    >>> "val/loss" in metrics, float(metrics["val/loss"]), metrics.get("val/acc")
    (True, 0.5, None)
    """

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or super().__contains__(_other_form(name))

    def __missing__(self, name: str) -> Tensor:
        other = _other_form(name)
        if super().__contains__(other):
            return super().__getitem__(other)
        raise KeyError(f"{name}; there are: {', '.join(self) or 'none yet'}")

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as dict.get
        """Return a metric by either form of its name."""
        try:
            return self[name]
        except KeyError:
            return default


def _other_form(name: object) -> str:
    return str(name).replace("/", "_")


class Logged:
    """The numbers that callbacks log.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._sums: dict[str, dict[str, list[Any]]] = {}

    def log(
        self,
        name: str,
        value: object,
        *,
        on_step: bool,
        on_epoch: bool,
        reduce_fx: str | Callable[..., Any] = "mean",
        batch_size: int | None = None,
    ) -> None:
        """Log a number for this step, for the mean of this epoch, or for both."""
        number = _number(name, value)
        has_both = on_step and on_epoch
        if on_step:
            self.put(f"{name}_step" if has_both else name, number)
        if on_epoch:
            key = f"{name}_epoch" if has_both else name
            self._add(key, number, reduce_fx, batch_size)

    def put(self, name: str, value: Tensor | float) -> None:
        """Put a number into the metric store."""
        stored = f"{self._run.phase}/{name}" if name in _TAKEN else name
        self._run.metrics.put(stored, value)

    def _add(
        self, name: str, number: Tensor | float, how: str | Callable[..., Any], size: int | None
    ) -> None:
        how = how if isinstance(how, str) else getattr(how, "__name__", "")
        if how not in ("mean", "sum", "max", "min"):
            raise HookError(
                f"'{name}' is logged with reduce_fx={how!r}: use 'mean', 'sum', 'min' or 'max', or "
                "compute the number at the end of the epoch."
            )
        weight = 1.0 if how != "mean" else float(size or self._batch_size())
        kept = self._sums.setdefault(self._run.phase, {}).setdefault(name, [how, 0.0, 0.0])
        if how in ("mean", "sum"):
            kept[1] = kept[1] + number * weight
        elif not kept[2]:
            kept[1] = number
        else:
            compare = max if how == "max" else min
            kept[1] = compare(kept[1], number)
        kept[2] += weight

    def _batch_size(self) -> int:
        # Outside of a batch, as at the end of an epoch, a number counts once.
        return self._run.batch_size if self._run.batch is not None else 1

    def _means(self, phase: str) -> dict[str, Tensor | float]:
        kept = self._sums.get(phase, {})
        return {name: s / w if how == "mean" else s for name, (how, s, w) in kept.items()}

    def close_epoch(self, phase: str) -> None:
        """Put the numbers of an epoch into the metric store, and start again."""
        for name, value in self._means(phase).items():
            self.put(name, value)
        self._sums.pop(phase, None)

    def metrics(self, *, step: bool = True, epoch: bool = True) -> Metrics:
        """Read all numbers of the store by Lightning's names; those of an epoch so far as well."""
        found = {_lightning_name(n): v for n, v in self._run.metrics.all_latest().items()}
        for phase in self._sums:
            found |= {name: float(value) for name, value in self._means(phase).items()}
        # `name` stands for both of `name_step` and `name_epoch`.
        for name in [name for name in found if name.endswith(("_step", "_epoch"))]:
            found.setdefault(name.rpartition("_")[0], found[name])
        return Metrics({name: torch.tensor(value) for name, value in found.items()})


def _lightning_name(name: str) -> str:
    """Translate a name of the metric store.

    >>> _lightning_name("val/loss"), _lightning_name("train_epoch/loss"), _lightning_name("lr-SGD")
    ('val_loss', 'train_loss_epoch', 'lr-SGD')
    """
    stream, slash, rest = name.partition("/")
    if slash and stream == "train_epoch":
        return f"train_{rest}_epoch".replace("/", "_")
    return name.replace("/", "_") if slash and stream in ("train", "val", "test") else name


def _number(name: str, value: object) -> Tensor | float:
    # A metric of torchmetrics is computed; Lightning does that at the end of the epoch.
    compute = getattr(value, "compute", None)
    if callable(compute):
        value = compute()
    if isinstance(value, Mapping):
        raise HookError(f"'{name}' is logged with a dict: use log_dict.")
    if isinstance(value, Tensor):
        return value.detach()
    return float(value)  # type: ignore[arg-type]
