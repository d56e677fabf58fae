"""``mmengine.visualization.Visualizer``: one object for all backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self, cast

from hookloop.dialects.mmengine.logging.named import Named
from hookloop.dialects.mmengine.visualization.backends import BaseVisBackend
from hookloop.writers.records import Image, Scalars

if TYPE_CHECKING:
    from hookloop.core.run import Run

Described = BaseVisBackend | Mapping[str, object]


class Visualizer(Named):
    """Passes numbers and pictures on to its backends.

    Drawing boxes and masks on pictures is not offered: draw with matplotlib and call `add_image`.

    Args:
        name: Of this visualizer; `get_instance` finds it again.
        image: Not needed.
        vis_backends: Objects, or how to build them.
        save_dir: Files go to its subdirectory ``vis_data``.
    """

    _instances: ClassVar[dict[str, object]] = {}

    def __init__(
        self,
        name: str = "visualizer",
        image: object = None,
        vis_backends: Sequence[Described] | Described | None = None,
        save_dir: str | None = None,
        **_: object,
    ) -> None:
        from hookloop.dialects.mmengine.registry import VISBACKENDS

        self.instance_name = name
        self._dataset_meta: object = None
        listed = vis_backends if isinstance(vis_backends, Sequence) else [vis_backends]
        self._vis_backends: dict[str, BaseVisBackend] = {}
        home = str(Path(save_dir) / "vis_data") if save_dir is not None else None
        for said in listed:
            if isinstance(said, BaseVisBackend):
                self._vis_backends[type(said).__name__] = said
            elif said is not None and (home or "save_dir" in said):  # Else there is nowhere to go.
                built = cast("BaseVisBackend", VISBACKENDS.build({"save_dir": home, **said}))
                self._vis_backends[type(built).__name__] = built

    @classmethod
    def get_current_instance(cls) -> Self:
        """Return the visualizer made or asked for last."""
        if not cls._instances:
            raise RuntimeError("Before calling Visualizer.get_current_instance, make one.")
        return super().get_current_instance()

    @property
    def dataset_meta(self) -> object:
        """What the data set says of itself."""
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, dataset_meta: object) -> None:
        self._dataset_meta = dataset_meta

    def get_backend(self, name: str) -> object:
        """Return what does the work behind a backend."""
        return self._vis_backends[name]

    def add_config(self, config: object, **kwargs: object) -> None:
        for one in self._vis_backends.values():
            one.add_config(config, **kwargs)

    def add_graph(self, model: object, data_batch: object, **kwargs: object) -> None:
        for one in self._vis_backends.values():
            one.add_graph(model, data_batch, **kwargs)

    def add_image(self, name: str, image: object, step: int = 0) -> None:
        for one in self._vis_backends.values():
            one.add_image(name, image, step)

    def add_scalar(self, name: str, value: object, step: int = 0, **kwargs: object) -> None:
        for one in self._vis_backends.values():
            one.add_scalar(name, value, step, **kwargs)

    def add_scalars(
        self, scalar_dict: Mapping[str, object], step: int = 0, file_path: str | None = None,
        **kwargs: object,
    ) -> None:  # fmt: skip
        for one in self._vis_backends.values():
            one.add_scalars(scalar_dict, step, file_path, **kwargs)

    def add_datasample(self, name: str, image: object, *args: object, **kwargs: object) -> None:
        """Show a picture; a subclass draws what was predicted on it."""
        self.add_image(name, image, cast("int", kwargs.get("step", 0)))

    def close(self) -> None:
        """Let go of files."""
        for one in self._vis_backends.values():
            one.close()


class EmittingVisualizer(Visualizer):
    """Hands everything to the writers of a hookloop run.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        super().__init__("run")
        self._run = run

    def add_image(self, name: str, image: object, step: int = 0) -> None:
        self._run.emit(Image(name, image, step or None))  # type: ignore[arg-type]

    def add_scalar(self, name: str, value: object, step: int = 0, **kwargs: object) -> None:
        self.add_scalars({name: value}, step)

    def add_scalars(
        self, scalar_dict: Mapping[str, object], step: int = 0, file_path: str | None = None,
        **kwargs: object,
    ) -> None:  # fmt: skip
        values = {name: float(cast("float", value)) for name, value in scalar_dict.items()}
        self._run.emit(Scalars(values, step or self._run.progress.iter))
