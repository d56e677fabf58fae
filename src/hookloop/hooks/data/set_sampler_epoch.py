"""`SetSamplerEpoch`: let samplers shuffle differently in every epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class SetSamplerEpoch(Hook):
    """Call ``set_epoch`` of the training data's sampler, if it has one, before each epoch.

    The number is that of completed epochs: 0 before the first.

    Example:
        >>> SetSamplerEpoch().name
        'set_sampler_epoch'
    """

    takes_part_in_training = True

    def before_train_epoch(self, run: Run) -> None:
        # Without it, torch's DistributedSampler repeats the order of the first epoch.
        if run.train_data is not None:
            run.train_data.set_epoch(run.progress.epoch)
