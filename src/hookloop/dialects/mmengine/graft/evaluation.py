"""`RunValLoop`: a validation of the run is made by MMEngine's own loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from hookloop.core.evaluation import Evaluation
from hookloop.core.run import Run
from hookloop.dialects.mmengine.runner.update import as_number
from hookloop.metrics.results import LiveResults, Results
from hookloop.requests import Wanted

if TYPE_CHECKING:
    from hookloop.dialects.mmengine.graft.training import Training


class _CutShort(BaseException):
    """Leaves a validation that a signal has cut short."""


class RunValLoop(Evaluation):
    """Validates with the runner's loop, evaluator and hooks, also where they are a project's.

    Args:
        run: The run.
        training: The training, with the runner.
    """

    def __init__(self, run: Run, training: Training) -> None:
        super().__init__(run, [], {})
        self._training = training

    def validate(self, wanted: Wanted = True) -> Results:
        """Run the validation loop once."""
        run, runner = self.run, self._training.runner
        run.phase = run.stream = "val"
        call_hook = runner.call_hook

        def call_or_leave(name: str, **arguments: object) -> None:
            if name == "before_val_iter" and run.is_interrupted:
                raise _CutShort
            call_hook(name, **arguments)

        runner.call_hook = call_or_leave
        is_first = run.progress.validated_at < 0
        try:
            with _continued_workers(runner.val_loop.dataloader, is_first=is_first):
                metrics = runner.val_loop.run()
        except _CutShort:
            return Results("val", {})
        finally:
            del runner.call_hook
            run.phase = run.stream = "train"
            runner.model.train()
        numbers = {name: as_number(value) for name, value in (metrics or {}).items()}
        self._publish("val", {f"val/{n}": v for n, v in numbers.items() if v is not None})
        self._training.obey_stop()
        return LiveResults(run.metrics, "val").read()


@contextmanager
def _continued_workers(loader: Any, *, is_first: bool) -> Iterator[None]:  # noqa: ANN401 - any loader
    """Let persistent workers that a resumed run starts again leave no trace.

    torch draws their seed in the first validation only, so the run that was cut off drew it once.
    """
    attributes = vars(loader)
    is_late = not is_first and attributes.get("persistent_workers") and not attributes["_iterator"]
    generator = attributes.get("generator")
    if is_late:  # Past DataLoader.__setattr__, which forbids changes of a loader in use.
        attributes["generator"] = torch.Generator()
    try:
        yield
    finally:
        if is_late:
            attributes["generator"] = generator
