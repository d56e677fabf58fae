"""The metrics of one phase by full name, such as ``val/loss``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, TypeVar, overload

from hookloop.errors import MissingMetricError, nearest

if TYPE_CHECKING:
    from hookloop.metrics.store import MetricStore

Default = TypeVar("Default")


class Results(dict[str, float]):
    """Numbers of one phase by full name: ``val/loss``. A look-up may omit the phase.

    >>> results = Results("val", {"val/loss": 0.5})
    >>> results, results["loss"], "loss" in results, results.get("accuracy")
    ({'val/loss': 0.5}, 0.5, True, None)
    """

    def __init__(self, phase: str, values: Mapping[str, float]) -> None:
        super().__init__(values)
        self.phase = phase

    def __missing__(self, name: str) -> float:
        full = f"{self.phase}/{name}"
        if dict.__contains__(self, full):
            return self[full]
        listed = ", ".join(self) or "none"
        raise MissingMetricError(
            f"There is no metric '{name}' in this {self.phase} phase."
            f"{nearest(full if '/' not in name else name, self)} There are: {listed}."
        )

    # `dict` itself does not call `__missing__` here.
    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or dict.__contains__(self, f"{self.phase}/{name}")

    # `dict.get` calls neither of the two methods above.
    @overload
    def get(self, name: str, default: None = None, /) -> float | None: ...
    @overload
    def get(self, name: str, default: float, /) -> float: ...
    @overload
    def get(self, name: str, default: Default, /) -> float | Default: ...
    def get(self, name: str, default: object = None, /) -> object:
        """Return a number, or ``default`` if there is none."""
        if name not in self:
            return default
        return self[name]

    def short(self) -> dict[str, float]:
        """Return the numbers without their phase, for a line that names the phase already.

        >>> Results("val", {"val/loss": 0.5}).short()
        {'loss': 0.5}
        """
        return without_phase(self, self.phase)


def without_phase(metrics: Mapping[str, float], phase: str) -> dict[str, float]:
    """Return metrics by their names within a phase.

    >>> without_phase({"val/loss": 0.5}, "val")
    {'loss': 0.5}
    """
    return {name.removeprefix(f"{phase}/"): value for name, value in metrics.items()}


def is_left_out(metric: str, results: Iterable[str], streams: Iterable[str]) -> bool:
    """Return whether a metric is of a validation stream that has no result this time.

    >>> is_left_out("val/full/loss", {"val/small/loss": 0.5}, ["small", "full"])
    True
    >>> is_left_out("val/quality", {"val/small/loss": 0.5}, ["small", "full"])
    False
    """
    own = [f"val/{name}/" for name in streams if name and metric.startswith(f"val/{name}/")]
    return bool(own) and not any(result.startswith(tuple(own)) for result in results)


class LiveResults(MutableMapping[str, float]):
    """A live view of the results of an evaluation in the metric store.

    Hooks at ``after_val_epoch`` and ``after_test_epoch`` receive it. It includes what earlier hooks
    put, so that no hook has to read the store itself. Setting a number replaces it in the store,
    and so reaches every hook and writer. Deleting a number hides it from later hooks and from the
    caller; the store keeps it.
    """

    def __init__(self, store: MetricStore, phase: str) -> None:
        self._store = store
        self._phase = phase
        self._hidden: set[str] = set()

    def read(self) -> Results:
        """Read all numbers, in one copy from the device."""
        # Read every time, since a hook may put another value between two look-ups.
        results = self._store.stream(self._phase)
        for name in self._hidden:
            results.pop(name, None)
        return results

    def __getitem__(self, name: str) -> float:
        return self.read()[name]

    def __setitem__(self, name: str, value: float) -> None:
        full = self._full_name(name)
        self._hidden.discard(full)  # A number that was deleted and is set again is shown again.
        self._store.replace(full, value)

    def __delitem__(self, name: str) -> None:
        _ = self[name]  # Raises if there is no such number.
        self._hidden.add(self._full_name(name))

    def _full_name(self, name: str) -> str:
        return name if name.startswith(f"{self._phase}/") else f"{self._phase}/{name}"

    def __contains__(self, name: object) -> bool:
        return name in self.read()

    def __iter__(self) -> Iterator[str]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())

    def __repr__(self) -> str:
        return repr(dict(self.read()))
