"""The newest checkpoint of a run, wherever its checkpoints are kept."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from hookloop.checkpoint.storage import is_url
from hookloop.checkpoint.store import LAST, CheckpointStore
from hookloop.errors import CheckpointError
from hookloop.runs.layout import Pointer, RunDir
from hookloop.secret import without_credentials

_log = logging.getLogger("hookloop")


def newest_checkpoint(
    run_dir: str, stores: Sequence[str] = ()
) -> tuple[str, dict[str, object]] | None:
    """Load a run's newest checkpoint: from where it was last saved, or else from beside it.

    Args:
        run_dir: The run's directory, or the URL of a store.
        stores: The other places in which the run keeps checkpoints, as the user named them.
    """
    problems: list[str] = []
    for place, last in places_of(run_dir, stores):
        try:
            found = CheckpointStore(place).newest(last)
        except CheckpointError as error:
            problems.append(str(error))
            continue
        if found is not None:
            if problems:
                _log.warning("%s Looking in '%s' instead.", " ".join(problems), place)
            return f"{place}/{found[0]}", found[1]
    if problems:
        raise CheckpointError(" ".join(problems))
    return None


def places_of(run_dir: str, stores: Sequence[str] = ()) -> list[tuple[str, str | None]]:
    """List where a run's checkpoints are, each place with the checkpoint to try first.

    The places are those that the user named: the run's directory and ``stores``. The file
    ``last_checkpoint`` chooses among them and never adds one: it was written by whoever made the
    directory, and opening the URL of a stranger can run code.
    """
    if is_url(run_dir):
        return [(run_dir, None)]
    pointer = RunDir(Path(run_dir)).last_pointer
    if pointer is None:
        return [(place, None) for place in (run_dir, *stores)]
    if pointer.location is None:
        return [(run_dir, None), *((store, "") for store in stores)]
    place = trusted_place(pointer, run_dir, stores)
    rest = [store for store in (run_dir, *stores) if store != place]
    return [(place, pointer.name), *((store, "") for store in rest)]


def trusted_place(pointer: Pointer, run_dir: str, stores: Sequence[str]) -> str:
    """Return the place of the user's that a pointer means, or reject the pointer."""
    for place in (run_dir, *stores):
        if is_same_place(place, str(pointer.location)):
            return place
    for place in stores:  # The store was moved: what it says itself is what the pointer says.
        if CheckpointStore(place).last() == pointer.name:
            return place
    raise CheckpointError(
        f"'{run_dir}/{LAST}' leads to '{pointer}', which is not a store of this run, so it is not "
        "opened. If you trust it, name it yourself: with resume= in Python, or with hookloop "
        "resume --checkpoint. Or give that store to SaveCheckpoint(directory=...)."
    )


def is_same_place(own: str, written: str) -> bool:
    """Return whether a place that a file names is one that the user named."""
    if is_url(own) or is_url(written):
        own, written = (without_credentials(place).rstrip("/") for place in (own, written))
        return own == written
    # Only the user's own path is looked at on disk.
    return os.path.abspath(written) in (os.path.abspath(own), os.path.realpath(own))
