"""The newest checkpoint of a run, wherever its checkpoints are kept."""

from __future__ import annotations

import logging
from pathlib import Path

from hookloop.checkpoint.storage import is_url
from hookloop.checkpoint.store import LAST, CheckpointStore
from hookloop.errors import CheckpointError

_log = logging.getLogger("hookloop")


def newest_checkpoint(run_dir: str) -> tuple[str, dict[str, object]] | None:
    """Load a run's newest checkpoint: from where it was last saved, or else from beside it."""
    faults: list[str] = []
    for place, last in places_of(run_dir):
        try:
            found = CheckpointStore(place).newest(last)
        except CheckpointError as error:
            faults.append(str(error))
            continue
        if found is not None:
            if faults:
                _log.warning("%s Looking in '%s' instead.", " ".join(faults), place)
            return f"{place}/{found[0]}", found[1]
    if faults:
        raise CheckpointError(" ".join(faults))
    return None


def places_of(run_dir: str) -> list[tuple[str, str | None]]:
    """List the stores of a run, each with the checkpoint to try first."""
    here: list[tuple[str, str | None]] = [(run_dir, None)]
    last = Path(run_dir) / LAST
    if is_url(run_dir) or not last.is_file():
        return here
    place, _, name = last.read_text(encoding="utf-8", errors="replace").strip().rpartition("/")
    return [(place, name), (run_dir, "")] if place else here
