"""SwAV's hooks: scores of the queue, prototypes of length 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.hooks.hook_utils import normalize_prototypes

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


class SwAVUpdateQueueScoresHook(QuietHook):
    """After each forward pass, let the loss compute the scores of its queue, if it uses one."""

    takes_part_in_training = True

    def on_forward(self, task: Task) -> None:
        loss, model = _parts(task)
        if task.config["LOSS"]["name"] == "swav_loss" and loss.swav_criterion.use_queue:  # type: ignore[index]
            loss.swav_criterion.compute_queue_scores(model.heads[0])


class NormalizePrototypesHook(QuietHook):
    """After each update, give the prototypes of the model's head the length 1."""

    takes_part_in_training = True

    def on_update(self, task: Task) -> None:
        _, model = _parts(task)
        if task.config["LOSS"]["name"] == "swav_loss" and task.config.find(  # type: ignore[index]
            "LOSS.swav_loss.normalize_last_layer"
        ):
            normalize_prototypes(model.heads[0])


def _parts(task: Task) -> tuple[Any, Any]:
    return task.loss, task.base_model
