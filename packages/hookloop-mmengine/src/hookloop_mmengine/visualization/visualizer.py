"""``mmengine.visualization.Visualizer``: one object in front of all backends."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from hookloop.writers import Image, Scalars
from hookloop_mmengine.dist import is_main_process
from hookloop_mmengine.utils.manager import ManagerMixin
from hookloop_mmengine.visualization.backends import (
    BaseVisBackend,
    TensorboardVisBackend,
)
from hookloop_mmengine.visualization.canvas import Array, Canvas
from hookloop_mmengine.visualization.experiment import Experiment

if TYPE_CHECKING:
    from hookloop import Run

Described = BaseVisBackend | Mapping[str, object]


class Visualizer(ManagerMixin, Canvas):
    """Pass numbers and images to its backends.

    Args:
        name: The name by which `get_instance` finds this visualizer.
        image: The image to draw on.
        vis_backends: The backends, or dicts that describe them.
        save_dir: The directory whose subdirectory ``vis_data`` gets the files.
        fig_save_cfg: Accepted for its name: nothing is drawn with matplotlib.
        fig_show_cfg: The same.
    """

    def __init__(
        self,
        name: str = "visualizer",
        image: object = None,
        vis_backends: Sequence[Described] | Described | None = None,
        save_dir: str | None = None,
        fig_save_cfg: Mapping[str, object] | None = None,
        fig_show_cfg: Mapping[str, object] | None = None,
    ) -> None:
        from hookloop_mmengine.registry import VISBACKENDS

        ManagerMixin.__init__(self, name)
        self._dataset_meta: object = None
        listed = vis_backends if isinstance(vis_backends, Sequence) else [vis_backends]
        self._vis_backends: dict[str, BaseVisBackend] = {}
        directory = str(Path(save_dir) / "vis_data") if save_dir is not None else None
        for entry in listed:
            if isinstance(entry, BaseVisBackend):
                # By the name of the class, with which hooks ask for a backend.
                self._vis_backends[type(entry).__name__] = entry
            # MMEngine drops backends without a directory, too.
            elif entry is not None and (directory or "save_dir" in entry):
                built = cast("BaseVisBackend", VISBACKENDS.build({"save_dir": directory, **entry}))
                self._vis_backends[type(built).__name__] = built
        if image is not None:
            self.set_image(cast("Array", image))

    @classmethod
    def get_instance(cls, name: str, **kwargs: object) -> Self:
        """Return the visualizer of a name, which is the current one of all visualizers."""
        found = super().get_instance(name, **kwargs)
        # Hooks ask Visualizer for a subclass that they do not know.
        Visualizer._instance_dict[name] = found
        return found

    @property
    def dataset_meta(self) -> object:
        """The meta information of the dataset."""
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, dataset_meta: object) -> None:
        self._dataset_meta = dataset_meta

    def get_backend(self, name: str) -> object:
        """Return the backend of a class name."""
        return self._vis_backends.get(name)

    def _writing(self) -> Iterable[BaseVisBackend]:
        """Return the backends that write; of several processes only the first one does."""
        return self._vis_backends.values() if is_main_process() else ()

    def add_config(self, config: object, **kwargs: object) -> None:
        for backend in self._writing():
            backend.add_config(config, **kwargs)

    def add_graph(self, model: object, data_batch: object, **kwargs: object) -> None:
        for backend in self._writing():
            backend.add_graph(model, data_batch, **kwargs)

    def add_image(self, name: str, image: object, step: int = 0) -> None:
        for backend in self._writing():
            backend.add_image(name, image, step)

    def add_scalar(self, name: str, value: object, step: int = 0, **kwargs: object) -> None:
        for backend in self._writing():
            backend.add_scalar(name, value, step, **kwargs)

    def add_scalars(
        self, scalar_dict: Mapping[str, object], step: int = 0, file_path: str | None = None,
        **kwargs: object,
    ) -> None:  # fmt: skip
        for backend in self._writing():
            backend.add_scalars(scalar_dict, step, file_path, **kwargs)

    def add_datasample(self, name: str, image: object, *args: object, **kwargs: object) -> None:
        """Show an image; a subclass draws the predictions on it."""
        self.add_image(name, image, cast("int", kwargs.get("step", 0)))

    def close(self) -> None:
        """Close the files of all backends."""
        for backend in self._vis_backends.values():
            backend.close()


class EmittingBackend(TensorboardVisBackend):
    """What a hook finds if it asks the run's visualizer for a backend; the writers get everything.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        BaseVisBackend.__init__(self)
        self._run = run

    # isinstance looks at this: the hook may have the class of the real package.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        real = sys.modules.get("mmengine.visualization")
        return cast("type", getattr(real, "TensorboardVisBackend", type(self)))

    @property
    def experiment(self) -> object:
        """What has the methods of torch's SummaryWriter."""
        return Experiment(self._run.emit)

    _tensorboard = experiment

    def add_config(self, config: object, **kwargs: object) -> None:
        """Do nothing: the run keeps its config."""

    def add_image(self, name: str, image: object, step: int = 0, **kwargs: object) -> None:
        # 0 is MMEngine's default and means that no step was given.
        self._run.emit(Image(name, image, step or None))  # type: ignore[arg-type]

    def add_scalars(
        self, scalar_dict: Mapping[str, object], step: int = 0, file_path: str | None = None,
        **kwargs: object,
    ) -> None:  # fmt: skip
        values = {name: float(cast("float", value)) for name, value in scalar_dict.items()}
        self._run.emit(Scalars(values, step or self._run.progress.iter))

    def close(self) -> None:
        """Do nothing: the run closes its writers."""


class EmittingVisualizer(Visualizer):
    """Pass everything to the writers of a hookloop run.

    Args:
        run: The run.
        name: The name by which `get_instance` finds this visualizer.
    """

    def __init__(self, run: Run, name: str = "run") -> None:
        super().__init__(name, vis_backends=EmittingBackend(run))
        # By the name of a class that hooks ask for.
        self._vis_backends = {TensorboardVisBackend.__name__: self._vis_backends.popitem()[1]}
