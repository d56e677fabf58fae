"""A checkpoint that somebody asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hookloop.checkpoint.store import Keep, Kind


@dataclass(frozen=True)
class Save:
    """What to save, where to, and what to keep of it.

    Attributes:
        name: The file's name.
        place: Directory or URL; the run's directory by default.
        kind: ``periodic`` and ``other`` ones are resumed from first, ``exception`` ones never.
        owner: The hook that asks; retention counts its own files only.
        keep: Which of the owner's files of this kind stay.
        leave_out: Parts that the file does not hold, for example ``("optimizers",)``.
        of: A file of this very iteration to keep under the new name, instead of writing again.
        metrics: What is known of the checkpoint, for the index.
    """

    name: str
    place: str | None = None
    kind: Kind = "other"
    owner: str = ""
    keep: Keep = field(default_factory=Keep)
    leave_out: tuple[str, ...] = ()
    of: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
