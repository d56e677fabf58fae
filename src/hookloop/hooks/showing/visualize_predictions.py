"""`VisualizePredictions`: draw inputs together with the predictions for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from hookloop.engine.hook import Hook
from hookloop.errors import HookError, MetricError
from hookloop.hooks.metrics.accumulate_variables import (
    check_streams,
    find_variable,
    is_selected,
    stream_of,
    to_array,
)
from hookloop.hooks.metrics.classification_metrics import to_classes
from hookloop.hooks.showing._figures import (
    file_name,
    moment_label,
    new_figure,
    require_plots,
    save_picture,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from hookloop.engine.run import Run

Draw = Callable[["Run"], object]


class VisualizePredictions(Hook):
    """Draw the first batches of each evaluation: images with their predicted and true classes.

    Files are ``visual/<stream>_epoch_<n>_batch_<k>.png``, with ``iter_<n>`` within an epoch; they
    also go to the writers. For anything but classified images, pass a function of your own. On many
    ranks a picture shows the first rank's part of a batch.

    Args:
        draw: ``draw(run)`` returns a tensor (channels first), an array (channels last) or a
            matplotlib figure of the current batch: ``run.batch`` and ``run.output``.
        examples: How many images to show of a batch.
        batches: How many batches of each stream to draw.
        class_names: Names of the classes; by default their numbers.
        streams: Where: ``"val"``, ``"test"`` or names of single streams.

    Example:
        >>> VisualizePredictions(class_names=["cat", "dog"], examples=4).batches
        1
    """

    ranks = "first"
    on_error = "disable"  # A picture that cannot be drawn must not end a training.

    def __init__(
        self,
        draw: Draw | None = None,
        examples: int = 16,
        *,
        batches: int = 1,
        class_names: Sequence[str] | None = None,
        streams: Sequence[str] = ("val", "test"),
    ) -> None:
        for name, value in (("examples", examples), ("batches", batches)):
            if value < 1:
                raise HookError(f"VisualizePredictions: {name} must be at least 1, not {value}.")
        if draw is None:  # A function of the user's may return tensors, without matplotlib.
            require_plots("VisualizePredictions")
        self.draw = draw or self._grid
        self.examples = examples
        self.batches = batches
        self.class_names = None if class_names is None else tuple(map(str, class_names))
        self.streams = tuple(streams)
        self._seen: dict[str, int] = {}

    def before_train(self, run: Run) -> None:
        check_streams(self, run, self.streams)

    def before_val_epoch(self, run: Run) -> None:
        self._seen = {}

    def after_val_iter(self, run: Run) -> None:
        self._show(run)

    def before_test_epoch(self, run: Run) -> None:
        self._seen = {}

    def after_test_iter(self, run: Run) -> None:
        self._show(run)

    def _show(self, run: Run) -> None:
        stream = stream_of(run)
        seen = self._seen.get(stream, 0)
        if seen >= self.batches or not is_selected(run, self.streams):
            return
        self._seen[stream] = seen + 1
        words = file_name(stream, moment_label(run), "batch", seen)
        caption = f"{stream}, {moment_label(run)}, batch {seen}"
        file = run.dir / "visual" / f"{words}.png"
        save_picture(run, f"{stream}/predictions/{seen}", self.draw(run), file, caption)

    def _grid(self, run: Run) -> Figure:
        images, output = find_variable(run, "inputs"), find_variable(run, "output")
        targets = find_variable(run, "targets")
        if not isinstance(images, Tensor) or images.ndim < 2 or not isinstance(output, Tensor):
            raise MetricError(
                f"{self.name}: the batches of '{run.stream}' are not classified images: give a "
                "function, draw=."
            )
        count = min(self.examples, len(images))
        predicted = to_array(to_classes(output[:count]))
        true = to_array(targets[:count]) if isinstance(targets, Tensor) else None
        columns = min(8, math.ceil(math.sqrt(count)))
        rows = math.ceil(count / columns)
        figure = new_figure(1.5 * columns, 1.8 * rows)
        for index, axes in enumerate(np.ravel(figure.subplots(rows, columns, squeeze=False))):
            axes.axis("off")
            if index < count:
                axes.imshow(_picture(images[index]), cmap="gray", interpolation="nearest")
                right = true is None or bool(np.all(true[index] == predicted[index]))
                text = self._name(predicted[index])
                if not right and true is not None:
                    text += f" ({self._name(true[index])})"
                axes.set_title(text, fontsize=9, color="black" if right else "red")
        return figure

    def _name(self, label: np.generic | NDArray[np.generic]) -> str:
        names = self.class_names
        if names is None or label.ndim or not 0 <= int(label.item()) < len(names):
            return str(label)
        return names[int(label.item())]


def _picture(image: Tensor) -> NDArray[np.float32]:
    """Convert an image to an array that matplotlib can show."""
    array = image.float().cpu().numpy()
    if array.ndim == 1:  # A vector is shown as a strip.
        array = array[None]
    if array.ndim == 3:
        array = np.moveaxis(array, 0, -1)
        # Any other number of channels cannot be shown as colors: the first one stands for them.
        array = array[..., 0] if array.shape[-1] not in (3, 4) else array[..., :3]
    # The mean and deviation that the data was normalized with are not known here.
    low, high = array.min(), array.max()
    scaled: NDArray[np.float32] = (array - low) / ((high - low) or 1.0)
    return scaled
