"""``mmengine.visualization``: backends for local files and TensorBoard.

Hookloop's own writers replace MMEngine's other backends (W&B, MLflow, ...).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import numpy as np
from torch import Tensor

from hookloop.dialects import append, drafted, make_folder, plain, write_text
from hookloop.writers import Image, Scalars, TensorBoard
from hookloop_mmengine.visualization.experiment import Experiment

P = ParamSpec("P")
R = TypeVar("R")


def force_init_env(old_func: Callable[P, R]) -> Callable[P, R]:
    """Let a backend's method call ``_init_env`` first, if that was not called yet."""

    @functools.wraps(old_func)
    def prepared(*args: P.args, **kwargs: P.kwargs) -> R:
        backend = args[0]
        if not hasattr(backend, "_init_env"):
            raise AttributeError(f"{type(backend)} does not have _init_env method.")
        if not getattr(backend, "_env_initialized", False):
            backend._env_initialized = True  # type: ignore[attr-defined]
            backend._init_env()
        return old_func(*args, **kwargs)

    return prepared


class BaseVisBackend:
    """The base of backends; each method that a subclass does not define does nothing.

    Args:
        save_dir: The directory of the files.
    """

    def __init__(self, save_dir: str | None = None) -> None:
        self._save_dir = Path(save_dir) if save_dir is not None else None
        self._env_initialized = False

    def _init_env(self) -> None:
        """Prepare what a subclass needs; methods with `force_init_env` call it once."""

    @property
    def directory(self) -> Path:
        """The directory of the files; it is made on first use."""
        if self._save_dir is None:
            raise ValueError(f"{type(self).__name__} needs save_dir.")
        self._save_dir.mkdir(parents=True, exist_ok=True)
        return self._save_dir

    @property
    def experiment(self) -> object:
        """The object that does the work."""
        return self

    def add_config(self, config: object, **kwargs: object) -> None: ...
    def add_graph(self, model: object, data_batch: object, **kwargs: object) -> None: ...
    def add_image(self, name: str, image: object, step: int = 0, **kwargs: object) -> None: ...
    def add_scalar(self, name: str, value: object, step: int = 0, **kwargs: object) -> None: ...
    def add_scalars(
        self,
        scalar_dict: Mapping[str, object],
        step: int = 0,
        file_path: str | None = None,
        **kwargs: object,
    ) -> None: ...

    def close(self) -> None: ...


class LocalVisBackend(BaseVisBackend):
    """JSON lines, images and the config in a directory.

    Args:
        save_dir: The directory.
        img_save_dir: The name of its subdirectory for images.
        config_save_file: The name of the file for the config.
        scalar_save_file: The name of the file for numbers, with one object per line.
    """

    def __init__(
        self,
        save_dir: str,
        img_save_dir: str = "vis_image",
        config_save_file: str = "config.py",
        scalar_save_file: str = "scalars.json",
    ) -> None:
        super().__init__(save_dir)
        self._images = img_save_dir
        self._config_file = config_save_file
        self._scalar_file = scalar_save_file

    def add_config(self, config: object, **kwargs: object) -> None:
        text = getattr(config, "pretty_text", None) or str(config)
        write_text(self.directory / self._config_file, text)

    def add_image(self, name: str, image: object, step: int = 0, **kwargs: object) -> None:
        from PIL import Image as PILImage

        folder = make_folder(self.directory / self._images, self.directory)
        pixels = np.asarray(image, dtype=np.uint8)
        # A reader of the directory never sees half an image.
        with drafted(folder / f"{name}_{step}.png") as draft:
            PILImage.fromarray(pixels).save(draft)

    def add_scalar(self, name: str, value: object, step: int = 0, **kwargs: object) -> None:
        self._append(self._scalar_file, {name: _as_number(value), "step": step})

    def add_scalars(
        self,
        scalar_dict: Mapping[str, object],
        step: int = 0,
        file_path: str | None = None,
        **kwargs: object,
    ) -> None:
        line = {name: _as_number(value) for name, value in scalar_dict.items()}
        # A step among the numbers wins, as in MMEngine.
        line.setdefault("step", step)
        if file_path is not None:
            self._append(file_path, line)
        self._append(self._scalar_file, line)

    def _append(self, name: str, line: Mapping[str, object]) -> None:
        # JSON has no NaN: `plain` writes it as text, so that every line can be read.
        append(self.directory / name, json.dumps(plain(line)) + "\n")


class TensorboardVisBackend(BaseVisBackend):
    """TensorBoard's event files.

    Args:
        save_dir: The directory for ``tensorboard --logdir``.
    """

    def __init__(self, save_dir: str) -> None:
        super().__init__(save_dir)
        self._writer: TensorBoard | None = None

    @property
    def writer(self) -> TensorBoard:
        """Hookloop's writer, which is opened on first use."""
        if self._writer is None:
            self._writer = TensorBoard(self.directory)
        return self._writer

    @property
    def experiment(self) -> object:
        """What has the methods of torch's SummaryWriter."""
        return Experiment(lambda record: self.writer.write([record]))

    # Hooks of other projects read the private name as well.
    _tensorboard = experiment

    def add_config(self, config: object, **kwargs: object) -> None:
        from hookloop.writers import Text

        self.writer.write(
            [Text("config", f"```\n{getattr(config, 'pretty_text', config)}\n```", 0)]
        )

    def add_image(self, name: str, image: object, step: int = 0, **kwargs: object) -> None:
        self.writer.write([Image(name, image, step)])  # type: ignore[arg-type]

    def add_scalar(self, name: str, value: object, step: int = 0, **kwargs: object) -> None:
        self.add_scalars({name: value}, step)

    def add_scalars(
        self,
        scalar_dict: Mapping[str, object],
        step: int = 0,
        file_path: str | None = None,
        **kwargs: object,
    ) -> None:
        numbers = {name: _as_number(value) for name, value in scalar_dict.items() if name != "step"}
        # TensorBoard has no place for text among the numbers.
        values = {n: float(v) for n, v in numbers.items() if isinstance(v, int | float)}
        self.writer.write([Scalars(values, int(cast("int", scalar_dict.get("step", step))))])

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _as_number(value: object) -> object:
    if isinstance(value, Tensor | np.ndarray | np.number):
        return value.item()
    return value
