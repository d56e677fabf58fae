"""`LogHook`: write scalars, show progress bars and a table of the validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from torch import Tensor

from hookloop_dialects.pointrix.hook.base_hook import Hook
from hookloop_dialects.pointrix.logger.writer import Logger, ProgressLogger, number

if TYPE_CHECKING:
    from hookloop_dialects.pointrix.trainer import TrainerFacade

LOSSES = ("L1_loss", "psnr", "ssims", "lpips")
IMAGES = {"images": "render", "gt_images": "ground_truth", "depth": "depth"}
POSITION = "point_cloud.position"


class LogHook(Hook):
    """Write the numbers of each step, show the progress, and average validations.

    The loss on the bar is smoothed: 0.4 of the new value and 0.6 of the old.
    """

    def __init__(self) -> None:
        self.ema_loss_for_log = 0.0
        self.bar_info: dict[str, str] = {}
        self.losses_test = dict.fromkeys(LOSSES, 0.0)
        self.progress_bar: ProgressLogger | None = None

    def before_run(self, trainner: TrainerFacade) -> None:
        Logger.log(f"The results are in {trainner.exp_dir}")

    def before_train(self, trainner: TrainerFacade) -> None:
        # Here, not in the constructor, because the limits are known only now.
        self.progress_bar = ProgressLogger("training")
        self.progress_bar.add_task("train", "Training", trainner.cfg.max_steps)  # type: ignore[arg-type]
        self.progress_bar.add_task("validation", "Validation", trainner.val_dataset_size)
        self.progress_bar.reset("validation", visible=False)
        self.progress_bar.start()

    def after_train_iter(self, trainner: TrainerFacade) -> None:
        numbers: dict[str, Any] = {}
        # Pointrix fails on a model without a point cloud or without this parameter group.
        cloud = getattr(trainner.model, "point_cloud", None)
        if cloud is not None:
            numbers["num_pt"] = len(cloud)
        for group in trainner.optimizer.param_groups:
            if group["name"] == POSITION:
                numbers["pos_lr"] = group["lr"]
        numbers |= trainner.loss_dict
        for name, value in numbers.items():
            if name == "loss":
                self.ema_loss_for_log = 0.4 * number(value) + 0.6 * self.ema_loss_for_log
                self.bar_info[name] = f"{self.ema_loss_for_log:.7f}"
            # As in Pointrix, where that entry is for the optimizer.
            if name != "optimizer_params" and _is_number(value):
                trainner.writer.write_scalar(name, value, trainner.global_step)
        interval = int(trainner.cfg.bar_upd_interval)  # type: ignore[call-overload]
        if trainner.global_step % interval == 0 and self.progress_bar is not None:
            self.progress_bar.update("train", interval, self.bar_info)

    def before_val(self, trainner: TrainerFacade) -> None:
        if self.progress_bar is not None:
            self.progress_bar.reset("validation", visible=True)

    def after_val_iter(self, trainner: TrainerFacade) -> None:
        found = trainner.metric_dict
        for name in self.losses_test:  # A subclass may replace the names.
            if name in found:
                self.losses_test[name] += number(found[name])
        file = found.get("rgb_file_name", trainner.run.stream)
        for name, title in IMAGES.items():
            if name in found:
                tag = f"test_view_{file}/{title}"
                trainner.writer.write_image(tag, _channels_last(found[name]), trainner.global_step)
        if self.progress_bar is not None:
            self.progress_bar.update("validation", 1)

    def after_val(self, trainner: TrainerFacade) -> None:
        table = Table(title=f"Validation at step {trainner.global_step}")
        # Pointrix divides by the size of the data set too. Its batches have one item.
        count = max(1, trainner.val_dataset_size)
        means = {name: total / count for name, total in self.losses_test.items() if total}
        for name, mean in means.items():
            trainner.writer.write_scalar(
                f"test/loss_viewpoint - {name}", mean, trainner.global_step
            )
            table.add_column(name)
        if means:
            table.add_row(*(f"{mean:.5f}" for mean in means.values()))
            Logger.print(table)
        self.losses_test = dict.fromkeys(self.losses_test, 0.0)  # Keeps a subclass's names.
        if self.progress_bar is not None:
            self.progress_bar.reset("validation", visible=False)

    def after_train(self, trainner: TrainerFacade) -> None:
        self.exception()

    def exception(self) -> None:
        if self.progress_bar is not None:
            self.progress_bar.stop()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, Tensor) and value.numel() == 1)


def _channels_last(image: Any) -> Any:  # noqa: ANN401 - a picture
    """Move the channels of a picture, which models have first, to the end."""
    image = image.squeeze(0) if image.ndim == 4 else image
    return image.permute(1, 2, 0) if image.ndim == 3 and image.shape[0] in (1, 3) else image
