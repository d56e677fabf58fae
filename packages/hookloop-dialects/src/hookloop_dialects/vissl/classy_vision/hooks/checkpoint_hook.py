"""`CheckpointHook`: save checkpoints under ClassyVision's names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop import Save
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task

NAME = "checkpoint.torch"


class CheckpointHook(QuietHook):
    """Write ``model_phase-<n>_end.torch`` and ``checkpoint.torch`` at the end of phases.

    Args:
        checkpoint_folder: An existing directory.
        input_args: Not used, because the engine keeps the config itself.
        phase_types: The types of phases after which to save.
        checkpoint_period: Save after every n-th of these phases.
    """

    def __init__(
        self,
        checkpoint_folder: str,
        input_args: object = None,
        phase_types: Collection[str] | None = None,
        checkpoint_period: int = 1,
    ) -> None:
        super().__init__()
        self.checkpoint_folder = checkpoint_folder
        self.input_args = input_args
        self.phase_types = list(phase_types or ["train"])
        self.checkpoint_period = checkpoint_period
        # In the state, so that a resumed run continues to count; ClassyVision starts again.
        self.state.phase_counter = 0  # type: ignore[attr-defined]

    def on_start(self, task: Task) -> None:
        # Not created, as in ClassyVision: the path may be misspelled.
        if not task.test_only and not Path(self.checkpoint_folder).is_dir():
            raise FileNotFoundError(f"There is no directory '{self.checkpoint_folder}' to save to.")

    def on_phase_end(self, task: Task) -> None:
        if task.test_only or task.phase_type not in self.phase_types:
            return
        self.state.phase_counter += 1  # type: ignore[attr-defined]
        if self.state.phase_counter % self.checkpoint_period == 0:  # type: ignore[attr-defined]
            name = f"model_phase-{task.phase_idx}_end.torch"
            save_as(task, name, NAME, self.checkpoint_folder)


def save_as(task: Task, name: str, latest: str, folder: str | None = None) -> None:
    """Request a checkpoint, and a second name of it for the newest."""
    owner = task.hook
    directory = None if folder is None or Path(folder) == task.run.dir else folder
    task.run.save(Save(name, directory, owner=owner), everywhere=True)
    # `of` makes it the same file under two names: it is written once.
    task.run.save(Save(latest, directory, owner=owner, of=name), everywhere=True)
