"""``mmengine.hooks.NaiveVisualizationHook``: images of test batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from hookloop_mmengine.hooks.hook import DATA_BATCH, Hook

if TYPE_CHECKING:
    from hookloop_mmengine.facade import RunnerFacade


class NaiveVisualizationHook(Hook):
    """Pass the images of test batches and their predictions to the visualizer.

    Args:
        interval: Batches between two that are shown.
        draw_gt: Whether to draw the ground truth; a visualizer of the user does it.
        draw_pred: Whether to draw the predictions; likewise.
    """

    priority = "NORMAL"

    def __init__(self, interval: int = 1, draw_gt: bool = True, draw_pred: bool = True) -> None:
        self.interval = interval
        self.draw_gt = draw_gt
        self.draw_pred = draw_pred

    def before_train(self, runner: RunnerFacade) -> None:
        runner.visualizer.add_graph(runner.model, None)  # type: ignore[attr-defined]

    def after_test_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: Sequence[object] | None = None,
    ) -> None:
        if not self.every_n_inner_iters(batch_idx, self.interval):
            return
        images = (
            data_batch["inputs"] if isinstance(data_batch, Mapping) else (data_batch or [()])[0]
        )
        for index, image in enumerate(images if isinstance(images, Tensor | list) else ()):
            # Visualizers expect height, width and channels; models have channels first.
            pixels = image.detach().cpu().permute(1, 2, 0).numpy() if image.ndim == 3 else image
            runner.visualizer.add_datasample(  # type: ignore[attr-defined]
                f"test_img_{batch_idx}_{index}",
                pixels,
                outputs[index] if outputs is not None and index < len(outputs) else None,
                draw_gt=self.draw_gt,
                draw_pred=self.draw_pred,
                step=batch_idx,
            )
