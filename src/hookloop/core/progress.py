"""Where a run stands: counters of what is completed, and the limits of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Stage = Literal["between", "inside", "closing"]

_COUNTERS = ("iter", "epoch", "iter_in_epoch", "stage", "validated_at")


@dataclass(slots=True)
class Progress:
    """Counters of *completed* things, and where they lead.

    In the first ``after_train_iter``, ``iter`` is 1; during the first epoch, ``epoch`` is 0.

    Attributes:
        iter: Optimizer updates done.
        epoch: Epochs done.
        iter_in_epoch: Updates done since the epoch began.
        max_iters: The limit of ``iter``, if it is known.
        max_epochs: The limit of ``epoch``, if there is one.
        epoch_iters: Updates per epoch, if it is known.
        stage: Where in an epoch the run is: ``between`` two, ``inside`` one's training, or
            ``closing`` it with the validation that belongs to it.
        validated_at: The iteration after which the last validation was made; -1 for none.
    """

    iter: int = 0
    epoch: int = 0
    iter_in_epoch: int = 0
    max_iters: int | None = None
    max_epochs: int | None = None
    epoch_iters: int | None = None
    stage: Stage = "between"
    validated_at: int = -1

    @property
    def is_done(self) -> bool:
        """Whether a limit is reached."""
        return (self.max_iters is not None and self.iter >= self.max_iters) or (
            self.max_epochs is not None and self.epoch >= self.max_epochs
        )

    @property
    def total_iters(self) -> int | None:
        """How many updates the whole run makes, if that can be told."""
        by_epoch = None
        if self.max_epochs is not None and self.epoch_iters is not None:
            by_epoch = self.max_epochs * self.epoch_iters
        limits = [limit for limit in (self.max_iters, by_epoch) if limit is not None]
        return min(limits) if limits else None

    def state_dict(self) -> dict[str, object]:
        """Return the counters; the limits belong to the config, which a resume may change."""
        return {name: getattr(self, name) for name in _COUNTERS}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned."""
        for name in _COUNTERS:
            setattr(self, name, state[name])
