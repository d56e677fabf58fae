"""Where a run stands: counters of what is completed, and the limits of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

Stage = Literal["between", "inside", "closing"]

_COUNTERS = ("iter", "epoch", "iter_in_epoch", "stage", "validated_at")
_LATER = ("samples", "tokens", "split")  # Older checkpoints do not hold them.


@dataclass(slots=True)
class Progress:
    """Counters of *completed* things, and their limits.

    In the first ``after_train_iter``, ``iter`` is 1; during the first epoch, ``epoch`` is 0.

    Attributes:
        iter: Optimizer updates done.
        epoch: Epochs done.
        iter_in_epoch: Updates done since the epoch began.
        max_iters: The limit of ``iter``, if it is known.
        max_epochs: The limit of ``epoch``, if there is one.
        epoch_iters: Updates per epoch, if that is known.
        stage: Where in an epoch the run is: ``between`` two, ``inside`` one's training, or
            ``closing`` it with the validation that belongs to it.
        validated_at: The iteration after which the last validation was made; -1 for none.
        validated_streams: The same for each stream, where each has an interval of its own.
        asked_at: The iteration after which a validation was made that no plan of iterations or
            epochs asked for, and none that one did; -1 for none.
        samples: Samples trained on, over all ranks; None if nobody asked to count them.
        tokens: The same for tokens.
        last_samples, last_tokens: Those of the last iteration.
        skipped_iters: Which iterations' data a rewind skipped, numbered as if none had been.
        split: Into how many parts each microbatch is split, if whole ones do not fit into memory.
        iters_of_epochs: Returns how many updates some epochs make, where their length changes.
    """

    iter: int = 0
    epoch: int = 0
    iter_in_epoch: int = 0
    max_iters: int | None = None
    max_epochs: int | None = None
    epoch_iters: int | None = None
    stage: Stage = "between"
    validated_at: int = -1
    asked_at: int = -1
    validated_streams: dict[str, int] = field(default_factory=dict)
    samples: int | None = None
    tokens: int | None = None
    last_samples: int = 0
    last_tokens: int = 0
    split: int = 1
    skipped_iters: tuple[int, ...] = ()
    iters_of_epochs: Callable[[int], int | None] | None = None

    @property
    def is_done(self) -> bool:
        """Whether a limit is reached."""
        return (self.max_iters is not None and self.iter >= self.max_iters) or (
            self.max_epochs is not None and self.epoch >= self.max_epochs
        )

    @property
    def total_iters(self) -> int | None:
        """How many updates the whole run makes, if that is known."""
        by_epoch = None
        if self.max_epochs is not None and self.iters_of_epochs is not None:
            by_epoch = self.iters_of_epochs(self.max_epochs)
        elif self.max_epochs is not None and self.epoch_iters is not None:
            by_epoch = self.max_epochs * self.epoch_iters
        limits = [limit for limit in (self.max_iters, by_epoch) if limit is not None]
        return min(limits) if limits else None

    def __str__(self) -> str:
        total, epochs = self.total_iters, self.max_epochs
        of_iters = "" if total is None else f" of {total}"
        of_epochs = "" if epochs is None else f" of {epochs}"
        return f"{self.iter}{of_iters} iterations, {self.epoch}{of_epochs} epochs"

    def state_dict(self) -> dict[str, object]:
        """Return the counters; the limits belong to the config, which a resume may change."""
        rare = {"validated_streams": bool(self.validated_streams), "asked_at": self.asked_at >= 0}
        names = (*_COUNTERS, *_LATER, *(name for name, is_used in rare.items() if is_used))
        return {name: getattr(self, name) for name in names} | {"left_out": self.skipped_iters}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned."""
        for name in _COUNTERS:
            setattr(self, name, state[name])
        for name in _LATER:
            if (now := getattr(self, name)) is not None:  # Otherwise nobody counts it any more.
                setattr(self, name, state.get(name) or now)
        skipped = cast("tuple[int, ...] | None", state.get("left_out"))
        self.skipped_iters = skipped or self.skipped_iters
        self.asked_at = cast("int", state.get("asked_at", -1))
        self.validated_streams = dict(cast("Mapping[str, int]", state.get("validated_streams", {})))
