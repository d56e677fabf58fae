"""`RunValLoop`: a validation of the run is made by MMEngine's own loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader

from hookloop_mmengine.runner.update import as_number

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop_mmengine.graft.training import Training


class _CutShort(BaseException):
    """Leaves a validation that a signal has cut short."""


class RunValLoop:
    """Validates with the runner's loop, evaluator and hooks, also where they are a project's.

    Args:
        run: The run.
        training: The training, with the runner.
    """

    def __init__(self, run: Run, training: Training) -> None:
        self._run = run
        self._training = training

    def __call__(self) -> dict[str, float] | None:
        """Run the validation loop once; None if a signal has cut it short."""
        run, runner = self._run, self._training.runner
        call_hook = runner.call_hook
        shown: dict[str, Any] = {}

        def call_or_leave(name: str, **arguments: Any) -> None:  # noqa: ANN401 - of mmengine
            if name == "before_val_iter" and run.is_interrupted:
                raise _CutShort
            if name == "after_val_epoch":
                shown.update(arguments.get("metrics") or {})
            call_hook(name, **arguments)

        runner.call_hook = call_or_leave
        is_first = run.progress.validated_at < 0
        try:
            with ExitStack() as stack:
                for loader in loaders_of(runner.val_loop):
                    stack.enter_context(_continued_workers(loader, is_first=is_first))
                returned = runner.val_loop.run()
        except _CutShort:
            return None
        finally:
            del runner.call_hook
            runner.model.train()
        self._training.obey_stop()
        # A loop of a project may return nothing; its hooks are shown the metrics all the same.
        metrics = returned if isinstance(returned, Mapping) else shown
        numbers = {name: as_number(value) for name, value in metrics.items()}
        return {name: value for name, value in numbers.items() if value is not None}


def loaders_of(loop: object) -> list[DataLoader[Any]]:
    """Return the loaders of a validation loop; that of a project may have several, or none."""
    found: list[Any] = []
    for value in vars(loop).values():
        parts = list(value.values()) if isinstance(value, Mapping) else value
        found += parts if isinstance(parts, list | tuple) else [parts]
    loaders = {id(one): one for one in found if isinstance(one, DataLoader)}
    return list(loaders.values())


def data_of(loop: object) -> Any:  # noqa: ANN401 - of a project
    """Return what the run counts as its validation data; the loop reads it by itself."""
    loaders = loaders_of(loop)
    if len(loaders) > 1:
        return {str(number): loader for number, loader in enumerate(loaders)}
    # Without any, what the loop reads is its own affair, and a validation is still due.
    return loaders[0] if loaders else getattr(loop, "dataloader", None) or [None]


@contextmanager
def _continued_workers(loader: DataLoader[Any], *, is_first: bool) -> Iterator[None]:
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
