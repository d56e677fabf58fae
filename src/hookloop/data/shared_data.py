"""Data that one process reads, or that several ranks share.

Ranks that share data draw the same orders, and each takes its part of each global batch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import cast

import torch
from torch import Tensor
from torch.utils.data.dataloader import _BaseDataLoaderIter

from hookloop.data.cut import Cut
from hookloop.data.exactness import SeedSamples
from hookloop.data.measures import length_of
from hookloop.data.position.order import Order
from hookloop.data.position.position import Position
from hookloop.data.randomness import Randomness
from hookloop.data.reader import make_reader
from hookloop.data.samplers import State, Stateful
from hookloop.data.shards import check_shareable, take_shard
from hookloop.data.share import Share
from hookloop.errors import DataError

_log = logging.getLogger("hookloop")


class SharedData:
    """An iterable of batches, and from where the order of its passes is drawn.

    Args:
        data: A DataLoader, a list, any iterable.
        name: ``train_data``, ``val_data['clean']``, ...
        seed_samples: Whether the randomness of samples depends on their position, where they are
            loaded in workers or the data is shared. ``"workers"`` leaves that of workers to torch
            and keeps it for a resume.
        limit: The most batches of a pass that are read: the first ones of its order.
    """

    def __init__(
        self,
        data: Iterable[object],
        name: str,
        *,
        seed_samples: SeedSamples,
        limit: int | None = None,
    ) -> None:
        if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
            raise DataError(f"{name} is {type(data).__name__}: it must be an iterable of batches.")
        self.data = data
        self.name = name
        self.at = Position()
        self.order = Order()
        self._seed_samples = seed_samples
        self.limit = limit
        self._cut: Cut | None = None
        self._is_shard = False
        self._shares: list[Share] = []
        self._reader = make_reader(data, seed_samples=seed_samples)
        if self.num_batches == 0:
            raise DataError(f"{name} is empty: it has no batch.{_why_empty(data)}")

    @property
    def inexact(self) -> str | None:
        """Why a resume in the middle of this data may not be exact, or None if it is."""
        if self.limit is not None and isinstance(self.data, Stateful):
            return (
                "limit= ends its passes early, and its own state_dict() would continue them in the "
                "next epoch"
            )
        return self._reader.inexact

    @property
    def num_batches(self) -> int | None:
        """How many batches an epoch has, or None if that is unknown without reading them.

        Data of unknown length is taken to reach its limit, if it has one.
        """
        total = length_of(self.data)
        if self.limit is None:
            return total
        return self.limit if total is None else min(self.limit, total)

    @property
    def is_one_pass(self) -> bool:
        """Whether the data can be read only once."""
        return isinstance(self.data, Iterator)

    @property
    def position(self) -> int:
        """Batches taken from the current pass; 0 if there is none."""
        return self.at.batches

    @property
    def passes(self) -> int:
        """How many passes have begun."""
        return self.at.passes

    def generators(self) -> list[torch.Generator]:
        """Return the generators that the order depends on, except for the process's own."""
        return self._reader.generators()

    def reading_state(self) -> dict[str, object]:
        """Return what the next whole pass depends on, except for the process's generators."""
        generators = [generator.get_state() for generator in self._reader.generators()]
        state = {"passes": self.passes, "generators": generators, **self.order.state_dict()}
        if (workers := self.worker_states()) is not None:
            state["workers"] = workers
        return state

    def worker_states(self) -> dict[str, object] | None:
        """Return the random numbers of this rank's workers, if they are kept and needed."""
        carried = self._reader.carried
        return carried.state_dict(self.at.batches) if carried is not None else None

    def load_worker_states(self, state: Mapping[str, object] | None, *, is_needed: bool) -> None:
        """Take back what `worker_states` returned; warn if they are needed and cannot be used."""
        if self._reader.carried is not None or state is None:
            missing = self._reader.load_worker_states(state)
        else:
            missing = (
                "the checkpoint holds the random numbers of workers: give seed_samples='workers' "
                "and as many workers as before"
            )
        if missing is not None and (is_needed or state is not None):
            _log.warning("This resume of %s is not exact: %s.", self.name, missing)

    def load_reading_state(self, state: Mapping[str, object]) -> None:
        """Take back what `reading_state` returned."""
        self.at.passes = cast("int", state["passes"])
        self._load_order(state)
        self._load_generators(state)
        workers = cast("Mapping[str, object] | None", state.get("workers"))
        goes_on = self.passes > 0 and getattr(self.data, "persistent_workers", False)
        self.load_worker_states(workers, is_needed=bool(state.get("position")) or goes_on)

    def _load_order(self, state: Mapping[str, object]) -> None:
        self.order.load_state_dict(state)
        if "order" in state and self._cut is None:
            self.share_among(0, 1)

    def _load_generators(self, state: Mapping[str, object]) -> None:
        saved = cast("list[Tensor]", state["generators"])
        for generator, generator_state in zip(self._reader.generators(), saved, strict=False):
            generator.set_state(generator_state)

    def share_among(
        self, rank: int, size: int, order: Randomness | None = None, *, is_training: bool = True
    ) -> None:
        """Read one rank's part of the data from now on; call it before anything is read.

        Args:
            rank: The number of the rank, from 0.
            size: How many ranks there are.
            order: From where all ranks draw the order of passes; by default from the generators as
                they are now, which must then be equal on all ranks.
            is_training: Whether each rank needs at least one sample of a full batch.
        """
        shard = take_shard(self.data, rank, size, self.name)
        if size > 1:
            check_shareable(self.data, self.name, size, is_training=is_training and shard is None)
        if shard is not None and shard is not self.data:
            self.data = shard
            self._reader = make_reader(shard, seed_samples=self._seed_samples)
        self._is_shard = shard is not None
        self._cut = Cut(rank, size, self.name)
        self._reader.share(self._cut, is_shard=self._is_shard)
        self.order.now = order or self.order.now or Randomness.now(gpus=False)

    def shares(self) -> list[Share] | None:
        """Return the shares of the last group, or of the last batch of an evaluation.

        None if the data is not shared.
        """
        return None if self._cut is None else self._shares

    def order_state(self) -> dict[str, object]:
        """Return all that orders are drawn from, so that the other ranks can draw the same."""
        order = self.order.now or Randomness.now(gpus=False)
        generators = [generator.get_state() for generator in self._reader.generators()]
        samplers = self._reader.sampler_states()
        return {"order": order.state, "generators": generators, "samplers": samplers}

    def load_order_state(self, state: Mapping[str, object]) -> None:
        """Take over what `order_state` returned on another rank."""
        self.order.load_state_dict(state)
        self._load_generators(state)
        self._reader.load_sampler_states(cast("State", state["samplers"]))

    def set_epoch(self, epoch: int) -> None:
        """Call ``set_epoch`` of the data or its sampler, so that it shuffles in another order."""
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

    def _replace_data(self, data: Iterable[object]) -> None:
        """Read other data, shared in the same way."""
        other = SharedData(data, self.name, seed_samples=self._seed_samples)
        if self._cut is not None:
            other.share_among(self._cut.rank, self._cut.size, self.order.now)
            self._cut, self._is_shard = other._cut, other._is_shard
        # The passes are counted on: a resume cannot tell data that is there again from new data.
        self.data, self._reader = other.data, other._reader


def nothing_read(data: object, name: str, passes: int = 1) -> DataError:
    """Return the error for data that gave no batch.

    Args:
        data: The data.
        name: Its name in messages.
        passes: How many passes over it have begun, this one included.
    """
    if not isinstance(data, Iterator):
        return DataError(f"{name} is empty: it gave no batch.", argument=name.partition("[")[0])
    kind = type(data).__name__
    when = "by the pass before" if passes > 1 else "before this run, or was empty"
    instead = (
        "Give the DataLoader itself, without iter()."
        if isinstance(data, _BaseDataLoaderIter)
        else "Give a DataLoader, a list of the batches, or an object whose __iter__ begins again."
    )
    return DataError(
        f"{name} gave no batch: it is a {kind}, which can be read only once, and was used up "
        f"{when}. {instead}",
        argument=name.partition("[")[0],
    )


def _why_empty(data: object) -> str:
    dataset = getattr(data, "dataset", None)
    if getattr(data, "drop_last", False) and isinstance(dataset, Sized) and len(dataset):
        return (
            f" Its {len(dataset)} samples are fewer than one batch of "
            f"{getattr(data, 'batch_size', '?')}, and drop_last=True drops them."
        )
    return ""
