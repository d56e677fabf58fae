"""The hooks of DeepCluster v2: the memory of the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


class InitMemoryHook(QuietHook):
    """Before the first phase, let the loss fill its memory from the training data."""

    takes_part_in_training = True

    def on_start(self, task: Task) -> None:
        if _is_used(task) and task.train_phase_idx < 0:
            loss: Any = task.loss
            loss.init_memory(task.dataloaders["train"], task.model)


class ClusterMemoryHook(QuietHook):
    """At the start of each phase, let the loss cluster its memory."""

    takes_part_in_training = True

    def on_phase_start(self, task: Task) -> None:
        if _is_used(task):
            loss: Any = task.loss
            loss.cluster_memory()


def _is_used(task: Task) -> bool:
    return task.config.find("LOSS.name") == "deepclusterv2_loss"
