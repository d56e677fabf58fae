"""`TaskData`: loaders, data sets and iterators of a run as hooks of VISSL see them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, cast

from hookloop.dialects import internals_of
from hookloop_dialects.vissl.task_config import TrainConfig
from hookloop_dialects.vissl.task_parts import TaskParts
from hookloop_dialects.vissl.views import sample_of

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop.dialects import TrainingStream


class PhaseIterator:
    """A pass over the data of a phase, beside the pass of the training, which it does not disturb.

    Args:
        source: The data.
    """

    def __init__(self, source: TrainingStream) -> None:
        self._source = source
        self._batches = cast("Generator[object, None, None]", iter(source))

    def __len__(self) -> int:
        count = self._source.num_batches
        if count is None:
            raise TypeError("the number of batches is unknown: the data is a stream")
        return count

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:  # noqa: ANN401 - the user's batch
        return sample_of(next(self._batches))

    def close(self) -> None:
        """End the pass, and with it the workers that read ahead."""
        self._batches.close()


class TaskData(TaskParts):
    """The data of the run."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        data = self.config.get("DATA")
        # VISSL makes the loaders from this section; here its batch size follows from the loader.
        if isinstance(data, dict) and isinstance(data.get("TRAIN"), dict):
            data["TRAIN"] = TrainConfig(data["TRAIN"], self.get_batchsize_per_replica)

    @property
    def dataloaders(self) -> dict[str, Any]:
        """The loaders by phase: ``train`` and ``test``."""
        return {phase: source.data for phase, source in self._sources().items()}

    @property
    def datasets(self) -> dict[str, Any]:
        """The data sets by phase; a loader without one is returned itself."""
        loaders = self.dataloaders
        return {phase: getattr(loader, "dataset", loader) for phase, loader in loaders.items()}

    def _sources(self) -> dict[str, TrainingStream]:
        sources: dict[str, TrainingStream] = {}
        if self.run.train_data is not None:
            sources["train"] = self.run.train_data
        # VISSL has one kind of evaluation. Validation data, which a training uses, comes last and
        # wins.
        for streams in (internals_of(self.run).test_data, self.run.val_data):
            if streams:
                sources["test"] = next(iter(streams.values()))
        return sources

    @property
    def dataloader(self) -> object:
        """The loader of the current phase."""
        return self.dataloaders["train" if self.run.phase == "train" else "test"]

    def build_dataloaders_for_current_phase(self) -> None:
        """Do nothing: the loaders of a run stay the same."""

    def create_data_iterators(self) -> None:
        """Begin a pass over the data of this phase in ``task.data_iterator``, for a hook."""
        self._end_pass()
        sources = self._sources()
        iterator = PhaseIterator(sources["train" if self.run.phase == "train" else "test"])
        self.data_iterator = iterator
        self.companion.close_iterator = self._end_pass

    def recreate_data_iterator(self, phase_type: str, **settings: object) -> None:
        """Begin a pass over the data of a phase; its settings are those of the loader."""
        self._end_pass()
        self.data_iterator = PhaseIterator(self._sources()[phase_type])
        self.companion.close_iterator = self._end_pass

    def _end_pass(self) -> None:
        iterator = self.__dict__.pop("data_iterator", None)
        if isinstance(iterator, PhaseIterator):
            iterator.close()

    @property
    def num_batches_per_phase(self) -> int:
        """Batches of the current phase; -1 if unknown."""
        if self.run.phase == "train":
            return self.run.progress.epoch_iters or -1
        streams = self.run.val_data if self.run.phase == "val" else internals_of(self.run).test_data
        # All streams of a validation are one phase here.
        counts = [source.num_batches for source in streams.values()]
        return -1 if None in counts else sum(cast("list[int]", counts))

    def num_phase_samples(self, phase_type: str) -> int:
        """Return the samples of a phase's data set."""
        return len(self.datasets[phase_type.lower()])

    def get_batchsize_per_replica(self) -> int:
        """Return the samples per batch of one process; of several, the most that one has."""
        # From the loader, because the last batch of an epoch may be smaller.
        size = getattr(self.dataloaders.get("train"), "batch_size", None)
        return -(-size // self.run.world.size) if isinstance(size, int) else self._size_now()

    def get_global_batchsize(self) -> int:
        """Return the samples per batch of all processes."""
        # The loader has the batches of all processes, of which each takes its part.
        size = getattr(self.dataloaders.get("train"), "batch_size", None)
        return size if isinstance(size, int) else self._size_now() * self.run.world.size

    def _size_now(self) -> int:
        # Before the first batch, hooks profile the model with one sample.
        return 1 if self.run.batch is None else self.run.batch_size
