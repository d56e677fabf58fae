"""The data that a stream reads now, what takes its place, and what a resume waits for.

A checkpoint holds the position in the data, and not the data: a resumed run begins with what the
script or the config gives. So a hook that has replaced the data does it again after a resume,
before the first batch is read, and the position goes over to that data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized

from torch.utils.data.dataloader import _BaseDataLoaderIter

from hookloop.data.position.measures import Measures, length_of, measure
from hookloop.data.position.monitor import OrderMonitor
from hookloop.data.ranks.cut import Cut
from hookloop.data.ranks.shards import check_shareable, take_shard
from hookloop.data.reading.exactness import SeedSamples
from hookloop.data.reading.loader import Reader, make_reader
from hookloop.errors import DataError

ADVICE = (
    "The hook that did it has to do it again after a resume, for example at before_train_epoch: "
    "'if run.progress.epoch >= 3 and not self.is_done'."
)


class CurrentData:
    """The data that is read now.

    Args:
        data: A DataLoader, a list, any iterable.
        name: Its name in messages.
        seed_samples: Whether the randomness of samples depends on their position.

    Attributes:
        reader: Starts passes over it.
        cut: Takes this rank's part of each batch; None if the data is not shared.
        is_shard: Whether the data is this rank's alone.
        monitor: Watches the order in which it holds its samples.
        next: The data from the next pass on, if a hook has given other data.
        expects_next: Whether a resumed run had other data for the next pass.
        awaited: The state of data that a hook has to bring first.
        is_replaced: Whether a hook has given this data.
    """

    def __init__(
        self, data: Iterable[object], name: str, *, seed_samples: SeedSamples = True
    ) -> None:
        check_batches(data, name)
        self.data = data
        self.name = name
        self._seed_samples = seed_samples
        self.reader: Reader = make_reader(data, seed_samples=seed_samples)
        self.cut: Cut | None = None
        self.is_shard = False
        self.monitor = OrderMonitor(data, name)
        self.next: Iterable[object] | None = None
        self.expects_next = False
        self.awaited: Mapping[str, object] | None = None
        self.is_replaced = False

    def share_among(self, rank: int, size: int, *, is_training: bool = True) -> None:
        """Read one rank's part from now on."""
        shard = take_shard(self.data, rank, size, self.name)
        if size > 1:
            check_shareable(self.data, self.name, size, is_training=is_training and shard is None)
        if shard is not None and shard is not self.data:
            self.data = shard
            self.reader = make_reader(shard, seed_samples=self._seed_samples)
        self.is_shard = shard is not None
        self.cut = Cut(rank, size, self.name)
        self.reader.share(self.cut, is_shard=self.is_shard)

    def measures(self, limit: int | None) -> Measures:
        """Return what the position in it depends on."""
        measures = measure(self.data) | {"limit": limit}
        if self.is_shard and self.cut is not None:
            measures["processes"] = self.cut.size
        return measures

    # --- what takes its place ---------------------------------------------------------------------

    def switch(self, data: Iterable[object]) -> None:
        """Read other data, shared in the same way."""
        other = CurrentData(data, self.name, seed_samples=self._seed_samples)
        if self.cut is not None:
            other.share_among(self.cut.rank, self.cut.size)
            self.cut, self.is_shard = other.cut, other.is_shard
        self.data, self.reader, self.monitor = other.data, other.reader, other.monitor
        self.is_replaced = True

    def switch_later(self, data: Iterable[object]) -> None:
        """Read other data from the next pass on."""
        check_batches(data, self.name)  # Now, so that it is rejected in the hook's own line.
        self.next = data

    def take_next(self) -> Iterable[object]:
        """Return the data of the next pass, which begins now; reject a resume that has none."""
        other, self.next = self.next, None
        if other is None:
            raise DataError(
                f"Before the checkpoint, {self.name} was replaced for the time after the pass that "
                f"has ended now, and has not been replaced since. {ADVICE}"
            )
        return other

    # --- what a resume waits for ------------------------------------------------------------------

    def check_is_there(self) -> None:
        """Reject a resume that would read other data than the run has read."""
        if self.awaited is not None:
            raise DataError(
                f"{self.name} was replaced by a hook before the checkpoint, and has not been "
                f"replaced since: the run would continue with other data. {ADVICE}"
            )

    def awaits(self, state: Mapping[str, object]) -> bool:
        """Return whether a state is of data that a hook has to bring first; keep it until then."""
        self.expects_next = bool(state.get("next_replaced"))
        if not state.get("replaced") or self.is_replaced:
            return False
        self.awaited = state
        return True

    def state_dict(self) -> dict[str, object]:
        """Return what was replaced, for the next run to expect."""
        waits = self.next is not None or self.expects_next
        state = {"replaced": self.is_replaced, "next_replaced": waits}
        return {name: True for name, flag in state.items() if flag}


def check_batches(data: object, name: str) -> None:
    """Reject what is not an iterable of batches, or has none."""
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise DataError(f"{name} is {type(data).__name__}: it must be an iterable of batches.")
    if length_of(data) == 0:
        raise DataError(f"{name} is empty: it has no batch.{_why_empty(data)}")


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
