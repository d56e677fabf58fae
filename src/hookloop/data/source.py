"""Where batches come from: any iterable, read epoch by epoch, in groups of microbatches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from itertools import islice, takewhile
from typing import cast

import torch
from torch import Tensor

from hookloop.data.indices import Place
from hookloop.data.orders import Orders
from hookloop.data.randomness import Randomness
from hookloop.data.reader import make_reader
from hookloop.errors import DataError, caused_by

Batches = Iterable[object]

_log = logging.getLogger("hookloop")


class Source:
    """One iterable of batches, under the name that messages give it, and the place in it.

    Args:
        data: A DataLoader, a list, any iterable. One that can be read only once (a generator) ends
            the training when it ends.
        name: ``train_data``, ``val_data['clean']``, ...
        seed_samples: Whether the randomness of samples loaded in workers follows from their place.
    """

    def __init__(self, data: Batches, name: str, *, seed_samples: bool = True) -> None:
        if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
            raise DataError(f"{name} is {type(data).__name__}: it must be an iterable of batches.")
        self.data = data
        self.name = name
        self.position = 0
        """Batches taken from the pass at hand; 0 when none is."""
        self.tells_passes = False
        """Whether a sampler is told the number of the pass, where epochs have no borders."""
        self.when_replaced: Callable[[], None] = lambda: None
        """Called when there is other data, with other generators."""
        self._besides: list[Source] = []
        self._passes = 0
        self._seed_samples = seed_samples
        self._reader = make_reader(data, seed_samples=seed_samples)
        self._orders = Orders(data, name)
        self._began: Randomness | None = None
        self._groups: Iterator[list[object]] | None = None
        if self.num_batches == 0:
            raise DataError(f"{name} is empty: it has no batch.{self._why_empty()}")

    @property
    def inexact(self) -> str | None:
        """Why a resume in the middle of this data may not be exact, or None if it is."""
        return self._reader.inexact

    @property
    def num_batches(self) -> int | None:
        """How many batches an epoch has, or None when only reading would tell."""
        return _length(self.data)

    @property
    def is_one_pass(self) -> bool:
        """Whether the data can be read only once."""
        return isinstance(self.data, Iterator)

    def generators(self) -> list[torch.Generator]:
        """Return the generators that the order depends on, besides the process's own."""
        return self._reader.generators()

    def epoch(self, size: int, iterations: int | None = None) -> Iterator[list[object]]:
        """Return the groups of microbatches of one epoch.

        With a number of iterations the data is read on across the borders of epochs, and begun
        again where it ends.
        """
        if iterations is None:
            return self.groups(size)
        return takewhile(bool, (self._next_group(size) for _ in range(iterations)))

    def _next_group(self, size: int) -> list[object]:
        for _ in range(2):  # The first may be the end of a pass; the second is a new one.
            self._groups = self._groups or self.groups(size)
            group = next(self._groups, None)
            if group is not None:
                return group
            self._groups = None
        return []

    def groups(self, size: int) -> Iterator[list[object]]:
        """Read a pass in groups of ``size`` microbatches, the last may be smaller.

        A pass that a checkpoint left in the middle is continued there.
        """
        batches = self._continue() if self.position else self._begin()
        if size == 1:  # The common case, at half the cost.
            for batch in batches:
                self.position += 1
                yield [batch]
        while group := list(islice(batches, size)):
            self.position += len(group)
            yield group
        self.finish()

    def finish(self) -> None:
        """Leave the pass at hand: the next one begins at the first batch."""
        self.position = 0
        self._began = None

    def close(self) -> None:
        """End what reading has started; a later pass starts it again, from the same place."""
        for one in self._besides:
            one.close()
        if self._reader.close():
            self._groups = None

    def replace(self, data: Batches) -> None:
        """Read other data from the next pass on; at once where passes have no borders."""
        other = Source(data, self.name, seed_samples=self._seed_samples)
        self.data, self._reader, self._passes = data, other._reader, 0
        self._orders = other._orders
        if self._groups is not None:
            self._groups = None
            self.finish()
        self.when_replaced()

    def _begin(self) -> Iterator[object]:
        """Begin a pass from its first batch."""
        generators = self._reader.generators()
        self._began = began = Randomness.now(generators)
        if self.tells_passes:
            self.set_epoch(self._passes)
        if self._passes:
            self._orders.warn_if_reordered()
        self._passes += 1
        key = began.key(self._passes)
        return self._reader.begin(Place(0, key, self._passes, lambda: began.restore(generators)))

    def _continue(self) -> Iterator[object]:
        """Go on in the middle of a pass: with its own order, and then with today's randomness."""
        generators = self._reader.generators()
        today = Randomness.now(generators)
        if self.tells_passes:
            self.set_epoch(self._passes - 1)
        began = self._began or today
        key = began.key(self._passes)
        began.restore(generators)
        batches = self._reader.begin(
            Place(self.position, key, self._passes, lambda: began.restore(generators))
        )
        today.restore(generators)
        return batches

    def state_dict(self) -> dict[str, object]:
        """Return the place in the data; its size does not depend on how far that is."""
        self._orders.warn_if_reordered()
        return {
            **self.reading_state(),
            "position": self.position,
            "began": self._began.state if self._began is not None else None,
            "loader": self._reader.state_dict(self.position),
            "measures": self._measures(),
            "orders": self._orders.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to the place that `state_dict` described; say if the data is not what it was."""
        self.position = cast("int", state["position"])
        self._say_changes(cast("Mapping[str, object]", state.get("measures") or {}))
        self._orders.warn_of_changes(cast("Mapping[str, list[object]]", state.get("orders") or {}))
        self.load_reading_state(state)
        began = cast("dict[str, object] | None", state["began"])
        self._began = Randomness(began) if began is not None else None
        if loader := cast("dict[str, object]", state["loader"]):
            self._reader.load_state_dict(loader)

    def _measures(self) -> dict[str, object]:
        """Return what the place in the data depends on."""
        dataset = getattr(self.data, "dataset", None)
        return {
            "batches": self.num_batches,
            "batch_size": getattr(self.data, "batch_size", None),
            "samples": _length(dataset),
            "loaded in workers": bool(getattr(self.data, "num_workers", 0)),
        }

    def _say_changes(self, before: Mapping[str, object]) -> None:
        changes = [
            f"{name}: {before[name]} -> {value}"
            for name, value in self._measures().items()
            if before.get(name, value) != value
        ]
        if changes:
            _log.warning(
                "%s is not what it was: %s. Going on at batch %d of it; no run without a break "
                "would have read the same.",
                self.name,
                "; ".join(changes),
                self.position,
            )

    def reading_state(self) -> dict[str, object]:
        """Return what the next whole pass depends on, apart from the process's generators."""
        generators = [one.get_state() for one in self._reader.generators()]
        return {"passes": self._passes, "generators": generators}

    def load_reading_state(self, state: Mapping[str, object]) -> None:
        """Take back what `reading_state` returned."""
        self._passes = cast("int", state["passes"])
        saved = cast("list[Tensor]", state["generators"])
        for generator, one in zip(self._reader.generators(), saved, strict=False):
            generator.set_state(one)

    def read(self) -> Iterator[object]:
        """Read a pass batch by batch, for an evaluation."""
        return self._begin()

    def __iter__(self) -> Iterator[object]:
        """Read a pass besides, for a hook: it is not counted and disturbs none under way."""
        besides = Source(self.data, self.name, seed_samples=self._seed_samples)
        self._besides.append(besides)
        try:
            yield from besides.read()
        finally:
            besides.close()
            self._besides.remove(besides)

    def set_epoch(self, epoch: int) -> None:
        """Tell a sampler that wants to know which epoch begins, so that it shuffles anew."""
        batch_sampler = getattr(self.data, "batch_sampler", None)
        for holder in (
            self.data,
            getattr(self.data, "sampler", None),
            batch_sampler,
            getattr(batch_sampler, "sampler", None),
        ):
            setter = getattr(holder, "set_epoch", None)
            if callable(setter):
                setter(epoch)
                return

    def _why_empty(self) -> str:
        dataset = getattr(self.data, "dataset", None)
        if getattr(self.data, "drop_last", False) and isinstance(dataset, Sized) and len(dataset):
            return (
                f" Its {len(dataset)} samples are fewer than one batch of "
                f"{getattr(self.data, 'batch_size', '?')}, and drop_last=True drops them."
            )
        return ""


def _length(data: object) -> int | None:
    try:
        return len(data) if isinstance(data, Sized) else None
    except TypeError:  # A DataLoader over an iterable data set has the method but no length.
        return None


def open_streams(
    data: Batches | Mapping[str, Batches] | None, name: str, *, seed_samples: bool = True
) -> dict[str, Source]:
    """Make sources of evaluation data: one stream without a name, or several with.

    >>> list(open_streams({"clean": [1], "noisy": [2]}, "val_data"))
    ['clean', 'noisy']
    >>> list(open_streams([1, 2], "val_data"))
    ['']
    """
    if data is None:
        return {}
    if isinstance(data, Mapping):
        streams = {str(key): (value, f"{name}['{key}']") for key, value in data.items()}
    else:
        streams = {"": (data, name)}
    with caused_by(name):
        return {key: Source(*one, seed_samples=seed_samples) for key, one in streams.items()}
