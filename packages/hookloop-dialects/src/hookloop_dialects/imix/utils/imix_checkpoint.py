"""``imix.utils.imix_checkpoint``: the checkpointer that only the first process writes with."""

from __future__ import annotations

import torch

from hookloop_dialects.imix.utils.checkpoint import Checkpointer, HasState
from hookloop_dialects.imix.utils.distributed_info import is_main_process


class imixCheckpointer(Checkpointer):
    """A `Checkpointer` that writes on the first process; for the arguments see there."""

    def __init__(
        self,
        model: torch.nn.Module,
        save_dir: str = "",
        *,
        is_save_disk: bool | None = None,
        is_record_ck: bool = True,
        **other_train_info: HasState,
    ) -> None:
        super().__init__(
            model,
            save_dir,
            is_save_disk=is_main_process() if is_save_disk is None else is_save_disk,
            is_record_ck=is_record_ck,
            **other_train_info,
        )
