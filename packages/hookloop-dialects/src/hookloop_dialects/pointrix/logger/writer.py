"""`Writer` and its subclasses, `Logger` and `ProgressLogger`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from torch import Tensor

from hookloop.dialects import Names, dump_yaml, require
from hookloop.writers import Image, Scalars, Text, to_pixels

if TYPE_CHECKING:
    from hookloop import Run

LOGGER_REGISTRY = Names("LOGGER_REGISTRY", f"{__name__}:WRITERS")
WRITERS = {
    "TensorboardWriter": f"{__name__}:TensorboardWriter",
    "WandbWriter": f"{__name__}:WandbWriter",
}

_CHANNELS = (1, 3, 4)

# The width is Pointrix's.
Logger = Console(width=120)
ErrorLogger = Console(width=120, stderr=True, style="bold red")


class Writer:
    """The base of writers of numbers, pictures and settings.

    Args:
        log_dir: The directory.
    """

    # Pointrix asserts the class NotImplementedError, which is true: there, a method that a
    # subclass forgets does nothing.

    def __init__(self, log_dir: str | Path) -> None:
        self.logfolder = log_dir

    def write_scalar(self, name: str, scalar: float | Tensor, step: int) -> None:
        """Write a number."""
        raise NotImplementedError(f"{type(self).__name__} has no write_scalar.")

    def write_image(self, name: str, image: object, step: int, caption: str | None = None) -> None:
        """Write a picture; its channels are first or last."""
        raise NotImplementedError(f"{type(self).__name__} has no write_image.")

    def write_config(self, name: str, config_dict: Mapping[str, object], step: int) -> None:
        """Write settings."""
        raise NotImplementedError(f"{type(self).__name__} has no write_config.")


class RunWriter(Writer):
    """Pass everything to the writers of the run; the default of a trainer.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run.dir)
        self._run = run

    def write_scalar(self, name: str, scalar: float | Tensor, step: int) -> None:
        self._run.emit(Scalars({name: number(scalar)}, step=step))

    def write_image(self, name: str, image: object, step: int, caption: str | None = None) -> None:
        self._run.emit(Image(name, pixels(image), step, caption or ""))

    def write_config(self, name: str, config_dict: Mapping[str, object], step: int) -> None:
        # A code block, because TensorBoard shows texts as Markdown.
        self._run.emit(Text(name, f"```yaml\n{dump_yaml(config_dict)}```", step))


class TensorboardWriter(Writer):
    """Write for TensorBoard.

    Args:
        log_dir: The directory.
        kwargs: Passed to torch's SummaryWriter.
    """

    def __init__(self, log_dir: str | Path, **kwargs: Any) -> None:  # noqa: ANN401 - see above
        super().__init__(log_dir)
        require("tensorboard", extra="tensorboard", who="TensorboardWriter")
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(log_dir), **kwargs)

    def write_scalar(self, name: str, scalar: float | Tensor, step: int) -> None:
        self.writer.add_scalar(name, number(scalar), step)

    def write_image(self, name: str, image: object, step: int, caption: str | None = None) -> None:
        self.writer.add_image(name, pixels(image), step, dataformats="HWC")

    def write_config(self, name: str, config_dict: Mapping[str, object], step: int) -> None:
        self.writer.add_text("config", str(dict(config_dict)), step)

    def finish(self) -> None:
        """Close the file."""
        self.writer.close()


class WandbWriter(Writer):
    """Write to Weights & Biases.

    Args:
        log_dir: Directory of its files.
        experiment_name: Name of the run there.
        project_name: Name of the project there.
        logcfg: The settings to record.
    """

    def __init__(
        self,
        log_dir: str | Path,
        experiment_name: str,
        project_name: str = "pointrix-project",
        logcfg: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(log_dir)
        self._wandb = require("wandb", extra="wandb", who="WandbWriter")
        self._wandb.init(
            project=project_name, dir=str(log_dir), name=experiment_name, config=dict(logcfg or {})
        )

    def write_scalar(self, name: str, scalar: float | Tensor, step: int) -> None:
        self._wandb.log({name: number(scalar)}, step=step)

    def write_image(self, name: str, image: object, step: int, caption: str | None = None) -> None:
        self._wandb.log({name: self._wandb.Image(pixels(image), caption=caption)}, step=step)

    def write_config(self, name: str, config_dict: Mapping[str, object], step: int) -> None:
        self._wandb.config.update(dict(config_dict), allow_val_change=True)

    def finish(self) -> None:
        """Finish the run there."""
        self._wandb.finish()


def parse_writer(cfg: Any, log_dir: str | Path, **kwargs: Any) -> Writer:  # noqa: ANN401
    """Make the writer with the name ``cfg.writer_type``."""
    # Pointrix parses its configs into dataclasses; ours are mappings.
    kind = cfg["writer_type"] if isinstance(cfg, Mapping) else cfg.writer_type
    made: Writer = LOGGER_REGISTRY.get(kind)(log_dir, **kwargs)
    return made


def number(value: float | Tensor) -> float:
    """Return a number or a scalar tensor as a float."""
    return float(value.detach()) if isinstance(value, Tensor) else float(value)


def pixels(image: object) -> Any:  # noqa: ANN401 - an array of bytes
    """Convert a picture to bytes, with its channels last; Pointrix's models have them first."""
    array = np.asarray(image.detach().cpu() if isinstance(image, Tensor) else image)
    is_first = array.ndim == 3 and array.shape[0] in _CHANNELS and array.shape[2] not in _CHANNELS
    return to_pixels(np.moveaxis(array, 0, -1) if is_first else array)


class ProgressLogger:
    """Progress bars on a terminal, one for each task.

    Args:
        description: Title of the tasks.
        suffix: Text after the bars.
    """

    def __init__(self, description: str, suffix: str | None = None) -> None:
        self.description = description
        self.progress_bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[log]}"),
            TextColumn(suffix or ""),
            console=Logger,
            disable=not Logger.is_terminal,  # In a file, each update would be a line.
        )
        self.tasks: dict[str, TaskID] = {}

    def add_task(
        self, name: str, description: str, total: int, log_dict: Mapping[str, object] | None = None
    ) -> None:
        """Add a bar."""
        self.tasks[name] = self.progress_bar.add_task(
            description, total=total, log=_log_text(log_dict)
        )

    def update(self, name: str, step: int, log: Mapping[str, object] | None = None) -> None:
        """Advance a bar by some steps."""
        self.progress_bar.update(self.tasks[name], advance=step, log=_log_text(log))

    def start(self) -> None:
        """Show the bars."""
        self.progress_bar.start()

    def stop(self) -> None:
        """Remove the bars."""
        self.progress_bar.stop()

    def start_task(self, name: str) -> None:
        """Start to measure the time of a task."""
        self.progress_bar.start_task(self.tasks[name])

    def stop_task(self, name: str) -> None:
        """Stop to measure the time of a task."""
        self.progress_bar.stop_task(self.tasks[name])

    def reset(self, name: str, visible: bool = True) -> None:
        """Set a bar back to its start."""
        self.progress_bar.reset(self.tasks[name], visible=visible)


def _log_text(values: Mapping[str, object] | None) -> str:
    return "  ".join(f"{name}: {value}" for name, value in (values or {}).items())
