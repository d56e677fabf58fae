"""A checkpoint that somebody asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hookloop.checkpoint.index import Kind
from hookloop.checkpoint.storage import is_file_name
from hookloop.errors import CheckpointError


@dataclass(frozen=True)
class Save:
    """What to save, where to, and what to keep of it.

    Attributes:
        name: The file's name.
        place: Directory or URL; the run's directory by default.
        kind: ``periodic`` and ``other`` ones are resumed from first, ``exception`` ones never.
        owner: The hook that asks; retention counts its own files only.
        keep: How many of the owner's files of this kind stay, the newest; None for all.
        forever: Whether this one stays in any case.
        leave_out: Parts that the file does not hold, for example ``("optimizers",)``.
        of: A file of this very iteration to keep under the new name, instead of writing again.
        metrics: Numbers for the index besides the metrics of the iteration, by their full names.
        lost: Called if it could not be saved and was given up.
        max_wait: Seconds that the training, and its end, wait for the store; those of the last save
            there if not given. A large checkpoint gets a second more for every 10 MB.

    >>> Save("../epoch_1.pth")
    Traceback (most recent call last):
    hookloop.errors.CheckpointError: '../epoch_1.pth' is no name for a checkpoint: give a file ...
    """

    name: str
    place: str | None = None
    kind: Kind = "other"
    owner: str = ""
    keep: int | None = None
    forever: bool = False
    leave_out: tuple[str, ...] = ()
    of: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    lost: Callable[[], None] | None = field(default=None, compare=False)
    max_wait: float | None = None

    def __post_init__(self) -> None:
        if not is_file_name(self.name):
            raise CheckpointError(
                f"'{self.name}' is no name for a checkpoint: give a file name; where to is said "
                "with place=."
            )
