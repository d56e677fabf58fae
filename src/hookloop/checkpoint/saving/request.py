"""A request to save a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hookloop.checkpoint.store.index import Kind
from hookloop.checkpoint.store.storage import is_file_name
from hookloop.errors import CheckpointError
from hookloop.runs.policy import Rule


@dataclass(frozen=True)
class Save:
    """What to save, where, and how many to keep.

    Attributes:
        name: The file's name. In a request that waits for the next sync point of the ranks,
            ``{iter}`` stands for the iteration in which it is obeyed.
        location: Directory or URL; the run's directory by default.
        kind: ``periodic`` and ``other`` ones are resumed from first, ``exception`` ones never.
        owner: The hook that asks; ``keep`` counts its own files only.
        keep: How many of the owner's files of this kind to keep, the newest; None for all.
        rule: Whether more or less of a metric is better: ``keep`` then counts the best instead of
            the newest. The metric is what the owner ends with: ``save_checkpoint/accuracy``.
        forever: Whether this one is never deleted.
        leave_out: Parts that the file does not hold, for example ``("optimizers",)``.
        of: A file of the same iteration to keep under the new name, instead of writing again.
        metrics: Numbers for the index, in addition to the metrics of the iteration, by their full
            names.
        on_lost: Called if it could not be saved and was given up.
        max_wait: Seconds that training, and its end, wait for the store; by default those of the
            last save there. A large checkpoint gets a second more for every 10 MB.
        marks_last: Whether ``last_checkpoint`` is to name it; by default if an exact resume may
            start from it.

    >>> Save("../epoch_1.pth")
    Traceback (most recent call last):
    hookloop.errors.CheckpointError: '../epoch_1.pth' is not a name for a checkpoint: give a ...
    """

    name: str
    location: str | None = None
    kind: Kind = "other"
    owner: str = ""
    keep: int | None = None
    forever: bool = False
    leave_out: tuple[str, ...] = ()
    of: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    # Not compared: two requests for the same file are equal whatever is to be called afterwards.
    on_lost: Callable[[], None] | None = field(default=None, compare=False)
    max_wait: float | None = None
    marks_last: bool | None = None
    rule: Rule | None = None

    def __post_init__(self) -> None:
        if not is_file_name(self.name):
            raise CheckpointError(
                f"'{self.name}' is not a name for a checkpoint: give a file name without a "
                "directory, and the directory with location=."
            )
