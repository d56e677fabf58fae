"""`TrainingTrace`: a file that shows other programs the state of a training."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import cast

from hookloop.dialects import dump_yaml, write_text
from hookloop_dialects.emloop.constants import EL_TRACE_FILE
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.types import EpochData


class TrainingTraceKeys:
    """The entries of the file."""

    TRAIN_BEGIN = "train_begin"
    TRAIN_END = "train_end"
    EPOCHS_DONE = "epochs_done"
    EXIT_STATUS = "exit_status"


class TrainingTrace(AbstractHook):
    """Keep ``trace.yaml``: start and end of the training, epochs done and exit status.

    Args:
        output_dir: Directory of the file.
        kwargs: See `AbstractHook`.
    """

    def __init__(self, output_dir: str, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._output_dir = Path(output_dir)
        self._trace: dict[str, object] = {
            "train_begin": None,
            "train_end": None,
            "epochs_done": 0,
            "exit_status": None,
        }

    # The other entries follow from the run itself.
    def state_dict(self) -> dict[str, object]:
        return {"train_begin": self._trace["train_begin"]}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._trace["train_begin"] = cast("str | None", state["train_begin"])

    def before_training(self) -> None:
        self._trace["train_begin"] = self._trace["train_begin"] or _now()
        self.save()

    def after_epoch(self, epoch_id: int, epoch_data: EpochData) -> None:
        self._trace["epochs_done"] = epoch_id
        self.save()

    def after_training(self, success: bool) -> None:
        self._trace |= {"train_end": _now(), "exit_status": 0 if success else 1}
        self.save()

    def save(self) -> None:
        """Write the file; a reader never sees half of it."""
        # Moments as YAML's own type, as emloop writes them; a state keeps them as text.
        shown = {
            name: datetime.fromisoformat(value) if isinstance(value, str) else value
            for name, value in self._trace.items()
        }
        write_text(self._output_dir / EL_TRACE_FILE, dump_yaml(shown))


def _now() -> str:
    return datetime.now().isoformat(sep=" ")
