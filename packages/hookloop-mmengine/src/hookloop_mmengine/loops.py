"""The loops that hooks find as ``runner.train_loop``, ``val_loop`` and ``test_loop``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Self, cast

import torch

from hookloop import Hook, Priority
from hookloop.dialects import internals_of, plan_of
from hookloop.errors import HookError
from hookloop_mmengine.loader_view import loader_view

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop.dialects import Stream, TrainingStream
    from hookloop_mmengine.facade import RunnerFacade

STOP = "mmengine_stop"


class _StopAfterEpoch(Hook):
    """Ends the training after the epoch.

    Args:
        reason: Why, for the log.
    """

    name = STOP
    priority = Priority.LOWEST

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def after_train_epoch(self, run: Run) -> None:
        run.stop(self._reason)


class LoopView:
    """One of the three loops, with the attributes that hooks use.

    Args:
        runner: The runner.
        data: The loader.
    """

    def __init__(self, runner: RunnerFacade, data: object) -> None:
        self.runner = runner
        self._dataloader = self._shown = self._view = data

    @property
    def dataloader(self) -> object:
        """The loader; hooks may replace it."""
        return self.show(self._dataloader)

    @dataloader.setter
    def dataloader(self, data: object) -> None:
        self._dataloader = data
        self._switch_to(data)

    def show(self, data: object) -> object:
        """Return what hooks see of a loader; the same object each time."""
        if self._shown is not data or self._view is data:
            self._shown, self._view = data, loader_view(data, self._stream())
        return self._view

    def _stream(self) -> TrainingStream | None:
        # Each kind of loop reads another stream.
        raise NotImplementedError

    def _switch_to(self, data: object) -> None:
        # Each kind of loop replaces another thing: a stream, the training data, or nothing.
        raise NotImplementedError

    @property
    def dataset(self) -> object:
        """The dataset of the loader."""
        return getattr(self.dataloader, "dataset", self.dataloader)


class EvaluationLoopView(LoopView):
    """The validation loop or the test loop."""

    mode = "val"

    def __init__(self, runner: RunnerFacade, data: object, evaluator: object = None) -> None:
        super().__init__(runner, data)
        self.evaluator = evaluator

    def _switch_to(self, data: object) -> None:
        # MMEngine has one validation set, so only the first stream is replaced.
        for source in self._streams().values():
            source.replace(cast("Iterable[object]", data))
            break

    def _stream(self) -> TrainingStream | None:
        return next(iter(self._streams().values()), None)

    def _streams(self) -> Mapping[str, Stream]:
        return self.runner.run.val_data

    def run(self) -> object:
        """Evaluate now, also in the middle of an epoch."""
        # A view of a native run has no such method: there, the engine decides when to evaluate.
        evaluate = getattr(self.runner, self.mode, None)
        if evaluate is None:
            raise HookError(
                f"'{self.runner.hook}' calls run() of the {self.mode} loop, which works only with "
                "MMEngine's Runner. Request a validation with runner.run.validate()."
            )
        return evaluate()

    def run_iter(self, idx: int, data_batch: object) -> None:
        """Predict one batch and pass it to the evaluator, with the hooks' calls around it."""
        arguments: dict[str, object] = {"batch_idx": idx, "data_batch": data_batch}
        self.runner.call_hook(f"before_{self.mode}_iter", **arguments)
        # The hook may run in the middle of a training, where gradients are recorded.
        with torch.no_grad():
            outputs = getattr(self.runner.model, f"{self.mode}_step")(data_batch)
        if self.evaluator is not None:
            self.evaluator.process(data_samples=outputs, data_batch=data_batch)  # type: ignore[attr-defined]
        self.runner.call_hook(f"after_{self.mode}_iter", **arguments, outputs=outputs)


class TrainLoopView(LoopView):
    """The training loop: its counters, and the request to stop."""

    def __init__(self, runner: RunnerFacade, data: object) -> None:
        super().__init__(runner, data)
        self._is_stopping = False
        # A Runner overwrites both with its settings; a native Trainer has its own interval.
        self.val_interval = 1
        self.val_begin = 1

    @property
    def epoch(self) -> int:
        """As in the runner."""
        return self.runner.epoch

    @property
    def iter(self) -> int:
        """As in the runner."""
        return self.runner.iter

    @property
    def max_epochs(self) -> int:
        """As in the runner."""
        return self.runner.max_epochs

    @property
    def max_iters(self) -> int:
        """As in the runner."""
        return self.runner.max_iters

    def _stream(self) -> TrainingStream | None:
        return self.runner.run.train_data

    # Hooks of other projects read the private names as well.
    _epoch, _iter, _max_epochs, _max_iters = epoch, iter, max_epochs, max_iters

    @property
    def stop_training(self) -> bool:
        """Whether a hook has requested the end of the training."""
        return self._is_stopping

    @stop_training.setter
    def stop_training(self, wanted: bool) -> None:
        """Request the end: after this epoch, or after this iteration if those are counted."""
        if not wanted or self._is_stopping:
            return
        self._is_stopping = True
        run, hook = self.runner.run, self.runner.hook
        reason = f"'{hook}' has set runner.train_loop.stop_training"
        # Outside of an epoch there is nothing to wait for.
        if self.runner.is_iter_based or run.progress.stage != "inside":
            run.stop(reason)
            return

        # MMEngine finishes the epoch and the validation after it, so the request waits for both.
        plan_of(run).add(_StopAfterEpoch(reason))


class EpochBasedTrainLoop(TrainLoopView):
    """A loop that counts epochs; a new loader is used from the next epoch on."""

    def _switch_to(self, data: object) -> None:
        source = self.runner.run.train_data
        if source is not None:
            source.replace(cast("Iterable[object]", data))


class _InfiniteDataloaderIterator:
    """An endless iterator over a loader, which starts again at its end.

    Args:
        dataloader: The loader.
    """

    def __init__(self, dataloader: Iterable[object]) -> None:
        self._dataloader = dataloader
        # Made when it is needed: a hook that replaces the iterator reads nothing from it, and the
        # workers of a loader would start for nothing.
        self._current: Iterator[object] | None = None
        self._epoch = 0

    @property
    def _iterator(self) -> Iterator[object]:
        if self._current is None:
            self._current = iter(self._dataloader)
        return self._current

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> object:
        try:
            return next(self._iterator)
        except StopIteration:
            self._epoch += 1
            self._current = iter(self._dataloader)
            return next(self._current)


class IterBasedTrainLoop(TrainLoopView):
    """A loop that counts iterations; a new iterator is used from the next iteration on."""

    def _switch_to(self, data: object) -> None:
        """Do nothing: in MMEngine, only a new ``dataloader_iterator`` has an effect."""

    _iterator: object = None

    @property
    def dataloader_iterator(self) -> object:
        """An iterator over the loader; hooks may replace it."""
        if self._iterator is None:
            self._iterator = _InfiniteDataloaderIterator(cast("Iterable[object]", self.dataloader))
        return self._iterator

    @dataloader_iterator.setter
    def dataloader_iterator(self, iterator: object) -> None:
        self._iterator = iterator
        source = self.runner.run.train_data
        if source is not None:
            # The loader and not its iterator: our source starts it again for each pass.
            data = getattr(iterator, "_dataloader", iterator)
            source.replace(cast("Iterable[object]", data), now=True)


class ValLoop(EvaluationLoopView):
    """The validation loop."""


class TestLoop(EvaluationLoopView):
    """The test loop."""

    mode = "test"

    def _streams(self) -> Mapping[str, Stream]:
        return internals_of(self.runner.run).test_data


def make_train_loop(runner: RunnerFacade, data: object) -> TrainLoopView:
    """Return a train loop of the class that hooks check for with ``isinstance``."""
    loop_class = IterBasedTrainLoop if runner.is_iter_based else EpochBasedTrainLoop
    return loop_class(runner, data)
