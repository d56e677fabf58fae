"""The metrics of one phase, by their full names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, TypeVar, overload

from hookloop.errors import MissingMetricError, nearest

if TYPE_CHECKING:
    from hookloop.metrics.store import MetricStore

Default = TypeVar("Default")


class Results(dict[str, float]):
    """Numbers of one phase by full name: ``val/loss``. A look-up may leave out the phase.

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

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or dict.__contains__(self, f"{self.phase}/{name}")

    # `dict.get` asks neither of the two methods above.
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
        """Return the numbers without their phase, as people read them in a line about it.

        >>> Results("val", {"val/loss": 0.5}).short()
        {'loss': 0.5}
        """
        return without_phase(self, self.phase)


def without_phase(metrics: Mapping[str, float], phase: str) -> dict[str, float]:
    """Return metrics by the names that they have within a phase.

    >>> without_phase({"val/loss": 0.5}, "val")
    {'loss': 0.5}
    """
    return {name.removeprefix(f"{phase}/"): value for name, value in metrics.items()}


class LiveResults(MutableMapping[str, float]):
    """The results of an evaluation as they stand in the metric store now.

    Hooks at ``after_val_epoch`` and ``after_test_epoch`` receive it. What an earlier hook put there
    is in it too, so that no hook has to ask the store again. A number that is set here replaces
    that of the evaluation in the store, and so reaches every hook and writer. A number that is
    deleted here is hidden from later hooks and from the caller; the store keeps it.
    """

    def __init__(self, store: MetricStore, phase: str) -> None:
        self._store = store
        self._phase = phase
        self._hidden: set[str] = set()

    def now(self) -> Results:
        """Read all of them, in one copy from the device."""
        results = self._store.stream(self._phase)
        for name in self._hidden:
            results.pop(name, None)
        return results

    def __getitem__(self, name: str) -> float:
        return self.now()[name]

    def __setitem__(self, name: str, value: float) -> None:
        full = self._full(name)
        self._hidden.discard(full)
        self._store.replace(full, value)

    def __delitem__(self, name: str) -> None:
        _ = self[name]  # Raises if there is no such number.
        self._hidden.add(self._full(name))

    def _full(self, name: str) -> str:
        return name if name.startswith(f"{self._phase}/") else f"{self._phase}/{name}"

    def __contains__(self, name: object) -> bool:
        return name in self.now()

    def __iter__(self) -> Iterator[str]:
        return iter(self.now())

    def __len__(self) -> int:
        return len(self.now())

    def __repr__(self) -> str:
        return repr(dict(self.now()))
