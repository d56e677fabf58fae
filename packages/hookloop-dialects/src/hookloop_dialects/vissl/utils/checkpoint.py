"""``vissl.utils.checkpoint``: files in VISSL's own form, and when to write them.

A resume of this engine does not use them: it has its own checkpoints, which hold more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from hookloop.errors import CheckpointError
from hookloop_dialects.vissl.classy_vision.generic.classy_checkpoints import (
    load_and_broadcast_checkpoint,
    save_checkpoint,
)
from hookloop_dialects.vissl.utils.io import create_file_symlink, makedir


class CheckpointWriter:
    """Write a checkpoint under VISSL's names.

    Args:
        checkpoint_folder: The directory.
        is_final_train_phase: Whether it is the last of the training.
        mode: ``phase`` or ``iteration``.
        mode_num: The number of the phase or iteration.
        backend: ``disk``.
    """

    def __init__(
        self,
        checkpoint_folder: str,
        is_final_train_phase: bool,
        mode: str,
        mode_num: int,
        backend: str = "disk",
    ) -> None:
        if backend != "disk":
            raise CheckpointError(f"CheckpointWriter: the backend is '{backend}', not 'disk'.")
        self.checkpoint_folder = checkpoint_folder
        self.is_final_train_phase = is_final_train_phase
        self.mode = mode
        self.mode_num = mode_num

    def get_checkpoint_name(self) -> str:
        """Return ``model_phase3.torch``, or ``model_final_checkpoint_phase3.torch``."""
        kind = "model_final_checkpoint" if self.is_final_train_phase else "model"
        return f"{kind}_{self.mode}{self.mode_num}.torch"

    def save_consolidated_checkpoint(self, content: dict[str, Any]) -> None:
        """Write the checkpoint, and make ``checkpoint.torch`` a link to it."""
        name = self.get_checkpoint_name()
        save_checkpoint(self.checkpoint_folder, {**content, "type": "consolidated"}, name)
        folder = self.checkpoint_folder
        create_file_symlink(f"{folder}/{name}", f"{folder}/checkpoint.torch")

    def save_sharded_checkpoint(
        self, content: dict[str, Any], shard_rank: int, world_size: int
    ) -> None:
        """Reject the call: the engine saves sharded models."""
        raise CheckpointError(
            "CheckpointWriter: shards of fairscale are not offered. Use "
            "hookloop.hooks.SaveCheckpoint(), which saves sharded models."
        )


class CheckpointLoader:
    """Load what `CheckpointWriter` wrote."""

    @classmethod
    def load_and_broadcast_init_weights(
        cls, checkpoint_path: str, device: torch.device | str
    ) -> dict[str, Any]:
        """Return the content of a checkpoint in all processes; there has to be one."""
        found = load_and_broadcast_checkpoint(checkpoint_path, device)
        if found is None:
            raise CheckpointError(f"There is no checkpoint '{checkpoint_path}'.")
        return found

    @classmethod
    def load_and_broadcast_checkpoint(
        cls, checkpoint_folder: str, checkpoint_path: str, device: torch.device | str
    ) -> dict[str, Any]:
        """Return the content of a checkpoint in all processes; there has to be one."""
        return cls.load_and_broadcast_init_weights(checkpoint_path, device)


def is_checkpoint_phase(
    mode_num: int, mode_frequency: int, train_phase_idx: int, num_train_phases: int, mode: str
) -> bool:
    """Return whether to save now: at every n-th phase or iteration, and after the last phase."""
    is_last = mode == "phase" and train_phase_idx == num_train_phases - 1
    return is_last or mode_num % mode_frequency == 0


def get_checkpoint_folder(config: Mapping[str, Any]) -> str:
    """Return the config's ``CHECKPOINT.DIR``, which is created if necessary."""
    section, processes = config["CHECKPOINT"], config.get("DISTRIBUTED", {})
    folder = str(section["DIR"])
    if processes.get("NUM_NODES", 1) > 1 and section.get("APPEND_DISTR_RUN_ID"):
        folder = f"{folder}/{processes['RUN_ID']}"
    makedir(folder)
    return folder
