"""What a hook sees as ``runner.train_loop``, ``runner.val_loop`` and ``runner.test_loop``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Self, cast

import torch

from hookloop.core.hook import FunctionHook, Priority
from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.data.source import Batches, Source
    from hookloop.dialects.mmengine.facade import RunnerFacade

STOP = "mmengine_stop"


class LoopView:
    """One of the three loops, as far as hooks look at them."""

    def __init__(self, runner: RunnerFacade, data: object) -> None:
        self.runner = runner
        self._dataloader = data

    @property
    def dataloader(self) -> object:
        """The loader; another one may be put in its place."""
        return self._dataloader

    @dataloader.setter
    def dataloader(self, data: object) -> None:
        self._dataloader = data
        self._read_from(data)

    def _read_from(self, data: object) -> None:
        raise NotImplementedError

    @property
    def dataset(self) -> object:
        """The data set behind the loader."""
        return getattr(self.dataloader, "dataset", self.dataloader)


class EvaluationLoopView(LoopView):
    """The validation or the test."""

    mode = "val"

    def __init__(self, runner: RunnerFacade, data: object, evaluator: object = None) -> None:
        super().__init__(runner, data)
        self.evaluator = evaluator

    def _read_from(self, data: object) -> None:
        for source in self._streams().values():
            source.replace(cast("Batches", data))
            break

    def _streams(self) -> Mapping[str, Source]:
        return self.runner.run.val_data

    def run(self) -> object:
        """Evaluate now, in the middle of whatever is under way."""
        evaluate = getattr(self.runner, self.mode, None)
        if evaluate is None:
            raise HookError(
                f"'{self.runner.hook}' runs the {self.mode} loop, which only a script's Runner "
                "can do at once: ask for a validation with runner.run.validate()."
            )
        return evaluate()

    def run_iter(self, idx: int, data_batch: object) -> None:
        """Let the model predict a batch and the evaluator take it in, between MMEngine's hooks."""
        told: dict[str, object] = {"batch_idx": idx, "data_batch": data_batch}
        self.runner.call_hook(f"before_{self.mode}_iter", **told)
        with torch.no_grad():
            outputs = getattr(self.runner.model, f"{self.mode}_step")(data_batch)
        if self.evaluator is not None:
            self.evaluator.process(data_samples=outputs, data_batch=data_batch)  # type: ignore[attr-defined]
        self.runner.call_hook(f"after_{self.mode}_iter", **told, outputs=outputs)


class TrainLoopView(LoopView):
    """The training: its counters, and the wish to stop it."""

    def __init__(self, runner: RunnerFacade, data: object) -> None:
        super().__init__(runner, data)
        self._stops = False
        self.val_interval = 1
        self.val_begin = 1

    @property
    def epoch(self) -> int:
        """As the runner counts."""
        return self.runner.epoch

    @property
    def iter(self) -> int:
        """As the runner counts."""
        return self.runner.iter

    @property
    def max_epochs(self) -> int:
        """As the runner counts."""
        return self.runner.max_epochs

    @property
    def max_iters(self) -> int:
        """As the runner counts."""
        return self.runner.max_iters

    _epoch, _iter, _max_epochs, _max_iters = epoch, iter, max_epochs, max_iters

    @property
    def stop_training(self) -> bool:
        """Whether a hook asked for the end."""
        return self._stops

    @stop_training.setter
    def stop_training(self, wanted: bool) -> None:
        """Ask for the end: after this epoch, or after this iteration if those are counted."""
        if not wanted or self._stops:
            return
        self._stops = True
        run, hook = self.runner.run, self.runner.hook
        reason = f"'{hook}' has set runner.train_loop.stop_training"
        if self.runner.is_iter_based or run.progress.stage != "inside":
            run.stop(reason)
            return

        def stop_after_epoch(run: Run) -> None:
            run.stop(reason)

        last = FunctionHook(stop_after_epoch, "after_train_epoch", priority=Priority.LOWEST)
        run.plan.add(last.named(STOP))


class EpochBasedTrainLoop(TrainLoopView):
    """A training that counts epochs; another loader is read from the next one on."""

    def _read_from(self, data: object) -> None:
        source = self.runner.run.train_data
        if source is not None:
            source.replace(cast("Batches", data))


class _InfiniteDataloaderIterator:
    """What an iteration-based loop reads from: a loader, begun again where it ends.

    Args:
        dataloader: The loader.
    """

    def __init__(self, dataloader: Iterable[object]) -> None:
        self._dataloader = dataloader
        self._iterator = iter(dataloader)
        self._epoch = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> object:
        try:
            return next(self._iterator)
        except StopIteration:
            self._epoch += 1
            self._iterator = iter(self._dataloader)
            return next(self._iterator)


class IterBasedTrainLoop(TrainLoopView):
    """A training that counts iterations only; its iterator says what is read."""

    def _read_from(self, data: object) -> None:
        """Nothing: as in MMEngine, ``dataloader_iterator`` is set for this."""

    @property
    def dataloader_iterator(self) -> _InfiniteDataloaderIterator:
        """A new iterator over the loader; another one may be put in its place."""
        return _InfiniteDataloaderIterator(cast("Iterable[object]", self.dataloader))

    @dataloader_iterator.setter
    def dataloader_iterator(self, iterator: _InfiniteDataloaderIterator) -> None:
        source = self.runner.run.train_data
        if source is not None:
            source.replace(iterator._dataloader)


class ValLoop(EvaluationLoopView):
    """A validation."""


class TestLoop(EvaluationLoopView):
    """A test."""

    mode = "test"

    def _streams(self) -> Mapping[str, Source]:
        return self.runner.run.test_data


def train_loop_of(runner: RunnerFacade, data: object) -> TrainLoopView:
    """Return the view of a kind that hooks can ask for with ``isinstance``."""
    kind = IterBasedTrainLoop if runner.is_iter_based else EpochBasedTrainLoop
    return kind(runner, data)
