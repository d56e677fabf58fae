"""`LoggerView`: Lightning's logger and TensorBoard's writer, over the writers of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from hookloop.dialects import Facade
from hookloop.writers import Histogram, Image, Text

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop_callbacks.on_lightning.logged import Logged


class Experiment(Facade):
    """``trainer.logger.experiment``: the methods of TensorBoard's writer, and wandb's ``log``.

    What a callback adds reaches every writer of the run.
    """

    role = "trainer.logger.experiment"

    def __init__(self, run: Run, logged: Logged) -> None:
        super().__init__(run)
        self._logged = logged

    def add_scalar(self, tag: str, scalar_value: object, *args: object, **kwargs: object) -> None:
        """Add a number."""
        self._logged.log(tag, scalar_value, on_step=True, on_epoch=False)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, object], *args: object, **kwargs: object
    ) -> None:
        """Add several numbers."""
        for name, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{name}", value)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,  # noqa: ANN401 - a tensor or an array
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Add a picture."""
        pixels = img_tensor.detach().cpu().numpy() if isinstance(img_tensor, Tensor) else img_tensor
        pixels = np.asarray(pixels)
        if dataformats.upper() == "CHW":
            pixels = np.moveaxis(pixels, 0, -1)
        self.run.emit(Image(tag, pixels))

    def add_images(self, tag: str, img_tensor: Any, *args: object, **kwargs: object) -> None:  # noqa: ANN401
        """Add several pictures, one after the other."""
        for number, one in enumerate(img_tensor):
            self.add_image(f"{tag}/{number}", one)

    def add_figure(self, tag: str, figure: Any, *args: object, **kwargs: object) -> None:  # noqa: ANN401
        """Add a figure of matplotlib."""
        figure.canvas.draw()
        self.run.emit(Image(tag, np.asarray(figure.canvas.buffer_rgba())[..., :3]))

    def add_histogram(self, tag: str, values: Any, *args: object, **kwargs: object) -> None:  # noqa: ANN401
        """Add numbers whose distribution is shown."""
        values = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
        self.run.emit(Histogram(tag, np.asarray(values, dtype=np.float32).ravel()))

    def add_text(self, tag: str, text_string: str, *args: object, **kwargs: object) -> None:
        """Add a text."""
        self.run.emit(Text(tag, str(text_string)))

    def log(self, data: Mapping[str, object], *args: object, **kwargs: object) -> None:
        """Add numbers, as wandb's run does."""
        for name, value in data.items():
            self._logged.log(name, value, on_step=True, on_epoch=False)

    def flush(self) -> None:
        """Do nothing: the run flushes its writers."""


class LoggerView(Facade):
    """``trainer.logger``: one logger, which stands for all writers of the run."""

    role = "trainer.logger"

    def __init__(self, run: Run, logged: Logged) -> None:
        super().__init__(run)
        self._logged = logged
        self.experiment = Experiment(run, logged)
        self.name = "hookloop"

    @property
    def version(self) -> str:
        """The name of the run's directory."""
        return self.run.dir.name

    @property
    def save_dir(self) -> str:
        """The run's directory."""
        return str(self.run.dir)

    log_dir = root_dir = save_dir

    def log_metrics(self, metrics: Mapping[str, object], step: int | None = None) -> None:
        """Put numbers into the metric store, for every writer."""
        for name, value in metrics.items():
            self._logged.log(name, value, on_step=True, on_epoch=False)

    def log_hyperparams(self, params: Any, *args: object, **kwargs: object) -> None:  # noqa: ANN401
        """Emit the hyperparameters as text."""
        values = params if isinstance(params, Mapping) else vars(params)
        self.run.emit(Text("hyperparameters", "\n".join(f"{k}: {v}" for k, v in values.items())))

    def log_image(self, key: str, images: Any, *args: object, **kwargs: object) -> None:  # noqa: ANN401
        """Add pictures, as the logger of wandb does."""
        for number, one in enumerate(images):
            form = "CHW" if isinstance(one, Tensor) else "HWC"
            self.experiment.add_image(f"{key}/{number}", one, dataformats=form)

    def save(self) -> None:
        """Do nothing: the run flushes its writers."""
