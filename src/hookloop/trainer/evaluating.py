"""What a Trainer does besides training: validate, test, predict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.core.loop import Loop
from hookloop.core.run import Phase, Run
from hookloop.data.source import Batches
from hookloop.errors import caused_by
from hookloop.metrics.results import Results
from hookloop.trainer.guard import Guarded
from hookloop.trainer.other_weights import using_checkpoint
from hookloop.trainer.predicting import Predictions, Target, make_update, open_data
from hookloop.update.update import Step, Update

if TYPE_CHECKING:
    from hookloop.trainer.planning import Planner
    from hookloop.trainer.session import Session


class Evaluates(Guarded):
    """The part of a Trainer that uses a model and does not train it."""

    run: Run
    _loop: Loop
    _planner: Planner
    _updates: list[Update]
    _session: Session
    _context: AbstractContextManager[None] | None

    def validate(self, *, checkpoint: str | Path | None = None) -> Results:
        """Evaluate on the validation data, outside of any training.

        Args:
            checkpoint: Evaluate the weights of this checkpoint instead: ``"best"``, ``"last"``, its
                name or path. Afterwards the model has its own again.

        Raises:
            Interrupted: When a signal cut it short: there is no result.
        """
        with self._evaluating("val", checkpoint):
            if checkpoint is not None:  # It says nothing about the state of the training.
                return self._loop.evaluation.validate()
            return self._loop.validate()

    def test(self, *, checkpoint: str | Path | None = None) -> Results:
        """Evaluate on the test data.

        Args:
            checkpoint: As for `validate`.

        Raises:
            Interrupted: When a signal cut it short: there is no result.
        """
        with self._evaluating("test", checkpoint):
            return self._loop.evaluation.test()

    def predict(
        self,
        data: Batches | str | None = None,
        *,
        to: Target = None,
        step: Step | None = None,
        checkpoint: str | Path | None = None,
    ) -> Any:  # noqa: ANN401 - what the model returns
        """Compute the outputs of the model for data, without a loss.

        Args:
            data: Batches of inputs, or of (inputs, targets), whose targets are ignored; a tensor
                as a single batch; or the name of a stream: ``"test_data"``, ``"val_data.clean"``.
                By default ``predict_data=`` of the Trainer.
            to: A file that ends in ``.csv``, ``.parquet`` or ``.npz``, written batch by batch; or a
                function that gets the output for each batch.
            step: ``step(run, batch)`` that returns the output, where the model is not simply called
                on the inputs.
            checkpoint: As for `validate`.

        Returns:
            The outputs joined along the samples, on the CPU, in the order of the data; with a file
            its path, with a function None.

        Raises:
            Interrupted: When a signal cut it short: there is no result, and no file.
        """
        run = self.run
        predictions = Predictions(run, to)
        update = make_update(step, self._context, has_loss=run.loss_function is not None)
        before = run.predict_data
        with caused_by("predict_data"):
            run.predict_data = {"": open_data(run, data)}
        run.loss = None  # Of the training, which hooks must not take for one of this batch.
        try:
            with self._evaluating("predict", checkpoint):
                return predictions.make(self._loop, update)
        finally:
            run.predict_data = before

    @contextmanager
    def _evaluating(self, purpose: Phase, checkpoint: str | Path | None) -> Iterator[None]:
        self.run.purpose = purpose
        self._planner.make(self.run, self._updates)
        self._planner.use()
        # Not `training`: an evaluation takes no lock, so it may look at a run that another process
        # is training.
        with self._session.running(), using_checkpoint(self.run, checkpoint):
            yield
