"""Find the newest checkpoint of a run in all the stores that the run uses."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from hookloop.checkpoint.store.storage import is_url
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.errors import CheckpointError
from hookloop.runs.checkpoint_names import LAST
from hookloop.runs.identity import as_id, is_same_place, read_identity
from hookloop.runs.layout import Pointer, RunDir
from hookloop.secret import without_credentials

_log = logging.getLogger("hookloop")


def load_newest(
    run_dir: str, stores: Sequence[str] = (), *, whole: bool = True
) -> tuple[str, dict[str, object]] | None:
    """Load a run's newest checkpoint: from where it was last saved, or else from another store.

    Args:
        run_dir: The run's directory, or the URL of a store.
        stores: The other locations in which the run keeps checkpoints, as the user named them.
        whole: Whether to read the tensors of a directory; otherwise they are verified only.
    """
    problems: list[str] = []
    for location, last in search_locations(run_dir, stores):
        try:
            store = CheckpointStore(location)
            if location != run_dir:
                check_owner(store, run_dir)
            found = store.newest(last, whole=whole)
            if found is not None and location != run_dir:
                _check_run(found, location, run_dir)
        except CheckpointError as error:
            problems.append(str(error))
            continue
        if found is not None:
            if problems:
                _log.warning("%s Looking in '%s' instead.", " ".join(problems), location)
            return f"{location}/{found[0]}", found[1]
    # No checkpoint anywhere is a new run. Checkpoints that all failed are not.
    if problems:
        raise CheckpointError(" ".join(problems))
    return None


def check_owner(store: CheckpointStore, run_dir: str | Path) -> None:
    """Reject a store outside of a run's directory that belongs to another run.

    Raises:
        CheckpointError: If it does.
    """
    # Where there is no run, somebody looks into the store alone.
    if not is_url(run_dir) and RunDir(Path(run_dir)).can_be_continued():
        store.check_owner(run_dir, read_identity(RunDir(Path(run_dir))).run_id)


def _check_run(found: tuple[str, dict[str, object]], location: str, run_dir: str) -> None:
    """Reject another run's checkpoint in a store that runs may share."""
    saved_by, own = as_id(found[1].get("run_id")), read_identity(RunDir(Path(run_dir))).run_id
    if None not in (saved_by, own) and saved_by != own:
        raise CheckpointError(
            f"'{location}/{found[0]}' is the newest checkpoint there, and was saved by run "
            f"{saved_by}, not by the run in '{run_dir}' ({own}). To continue it nevertheless, name "
            "it with resume=."
        )


def own_locations(run_dir: str | Path, stores: Sequence[str]) -> list[str]:
    """List where a run keeps checkpoints, without the stores that belong to another run."""
    found = [str(run_dir)]
    for location in stores:
        try:
            check_owner(CheckpointStore(location), run_dir)
        except CheckpointError as error:
            _log.warning("%s They are left out.", error)
        else:
            found.append(location)
    return found


def search_locations(run_dir: str, stores: Sequence[str] = ()) -> list[tuple[str, str | None]]:
    """List where a run's checkpoints are, each location with the checkpoint to try first.

    Only locations that the user named are listed: the run's directory and ``stores``. The file
    ``last_checkpoint`` chooses among them and never adds one.
    """
    if is_url(run_dir):
        return [(run_dir, None)]
    pointer = RunDir(Path(run_dir)).last_pointer
    if pointer is None:
        return [(location, None) for location in (run_dir, *stores)]
    # An empty name keeps the other stores from trying their own `last_checkpoint` first: the
    # pointer of the run is newer than theirs.
    if pointer.location is None:
        return [(run_dir, None), *((store, "") for store in stores)]
    location = trusted_location(pointer, run_dir, stores)
    rest = [store for store in (run_dir, *stores) if store != location]
    return [(location, pointer.name), *((store, "") for store in rest)]


def trusted_location(pointer: Pointer, run_dir: str, stores: Sequence[str]) -> str:
    """Return the user's own location that a pointer means, or reject the pointer."""
    # Anybody may have written the pointer, and opening a stranger's URL can run code. So what is
    # returned is always the user's own text, never the pointer's.
    for location in (run_dir, *stores):
        if is_same_location(location, str(pointer.location)):
            return location
    # The store may have been moved: then its own `last_checkpoint` agrees with the pointer.
    for location in stores:
        if CheckpointStore(location).last() == pointer.name:
            return location
    raise CheckpointError(
        f"'{run_dir}/{LAST}' leads to '{pointer}', which is not a store of this run, so it is not "
        "opened. If you trust it, name it yourself: with resume= or checkpoint= in Python, or with "
        "--checkpoint on the command line. Or give that store to SaveCheckpoint(directory=...)."
    )


def is_same_location(own: str, written: str) -> bool:
    """Return whether a location found in a file is one that the user named."""
    if is_url(own) or is_url(written):
        own, written = (without_credentials(url).rstrip("/") for url in (own, written))
        return own == written
    return is_same_place(written, own)
