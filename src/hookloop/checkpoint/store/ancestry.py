"""The checkpoint of another run that a run began with: noted, and found again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import time

from hookloop.checkpoint.shards.manifest import read_manifest
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.reading import read_checkpoint
from hookloop.checkpoint.store.storage import (
    LocalStorage,
    is_checkpoint_directory,
    is_same_location,
    is_url,
)
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.checkpoint.store.writing import file_checksum
from hookloop.errors import CheckpointError
from hookloop.runs.identity import Parent, as_id, read_identity
from hookloop.runs.layout import RunDir
from hookloop.runs.lineage import directories_in, is_near
from hookloop.secret import without_credentials


def path_from(run_dir: Path, checkpoint: str) -> str:
    """Return where a checkpoint is, as seen from a run's directory; a URL without credentials."""
    if is_url(checkpoint):
        return without_credentials(checkpoint)
    try:
        return Path(os.path.relpath(checkpoint, run_dir)).as_posix()
    except ValueError:  # On another drive of Windows.
        return os.path.abspath(checkpoint)


def note_parent(
    run_dir: Path, label: str, checkpoint: Mapping[str, object], changed: Sequence[str] = ()
) -> Parent:
    """Describe a checkpoint that was loaded, so that it can be found and recognized later."""
    place, _, name = label.rpartition("/")
    store = CheckpointStore(place or ".")
    owner = store.index.read_owner()
    run_id = as_id(checkpoint.get("run_id")) or (owner.run_id if owner is not None else None)
    progress = checkpoint.get("progress")
    done = progress.get("iter") if isinstance(progress, Mapping) else None
    size, crc32 = _fingerprint(store, name)
    home = owner.run_dir if owner is not None else None
    listed = store.index.entries.get(name)
    return Parent(
        path_from(run_dir, label),
        run_id,
        done if isinstance(done, int) else None,
        size,
        crc32,
        run=path_from(run_dir, home) if home is not None else None,
        time=listed.time if listed is not None else time(),
        changed=tuple(changed),
    )


def load_parent(
    run_dir: Path, parent: Parent, stores: Sequence[str] = (), *, whole: bool = True
) -> tuple[str, dict[str, object]]:
    """Load the checkpoint that a run began with; it has none of its own.

    Args:
        run_dir: The run's directory.
        parent: The checkpoint.
        stores: Where the user said that checkpoints are.
        whole: Whether to read the tensors of a directory of shards.

    Raises:
        CheckpointError: If it is gone, has changed, or may not be opened: the run would begin at 0
            instead.
    """
    what = f"'{run_dir}' has no checkpoint of its own yet. It began with {parent}"
    if parent.size is None or parent.crc32 is None:
        raise CheckpointError(
            f"{what}, and was cut before that was loaded: name it again with resume=.",
            argument="resume",
        )
    for label in _candidates(run_dir, parent, stores):
        place, _, name = label.rpartition("/")
        store = CheckpointStore(place)
        listed = Saved(name, place, parent.iter or 0, 0, parent.size, parent.crc32)
        try:
            read_checkpoint(store.storage, name, listed, whole=False)
            return label, store.load(name, whole=whole)
        except CheckpointError as error:
            raise CheckpointError(
                f"{what}, which has changed since: {error} To continue from it nevertheless, name "
                f"it with resume='{label}'.",
                argument="resume",
            ) from error
    raise CheckpointError(
        f"{what}, which is not there any more. Put it back, or name it where it is now with "
        "resume=. To begin at iteration 0, choose another run directory.",
        argument="resume",
    )


def _candidates(run_dir: Path, parent: Parent, stores: Sequence[str]) -> Iterator[str]:
    """Yield where the checkpoint may be: at its path, or in a directory of the same run beside it.

    Anybody may have written the path, so it is only followed to where the user's own runs are.
    """
    place, _, name = parent.path.rpartition("/")
    kept = RunDir(run_dir).parent_folder / name
    if kept.is_file() or is_checkpoint_directory(kept):  # A fork has a link to it.
        yield str(kept)
        return
    if is_url(parent.path):
        for store in stores:
            if is_same_location(store, place):
                yield f"{store}/{name}"
                return
        raise CheckpointError(
            f"'{run_dir}' has no checkpoint of its own yet. It began with {parent}. A URL that a "
            "file names is not opened: name it with resume=.",
            argument="resume",
        )
    home = Path(os.path.abspath(run_dir))
    noted = Path(os.path.normpath(home / parent.path))
    own = [Path(os.path.abspath(store)) for store in stores if not is_url(store)]
    if not (is_near(noted, home) or any(noted.is_relative_to(one) for one in own)):
        raise CheckpointError(
            f"'{run_dir}' has no checkpoint of its own yet. It began with {parent}, outside of the "
            "directories around it, where a file may not lead: name it with resume=.",
            argument="resume",
        )
    if noted.is_file() or is_checkpoint_directory(noted):
        yield str(noted)
    elif parent.run_id is not None:
        for moved in _of_run(parent.run_id, {home.parent, noted.parent.parent}):
            found = moved / noted.name
            if found.is_file() or is_checkpoint_directory(found):
                yield str(found)


def _of_run(run_id: str, places: set[Path]) -> Iterator[Path]:
    """Yield the directories in some places that hold the checkpoints of a run."""
    for path in directories_in(places):
        owner = CheckpointStore(path).index.read_owner()
        if run_id in (read_identity(RunDir(path)).run_id, owner.run_id if owner else None):
            yield path


def _fingerprint(store: CheckpointStore, name: str) -> tuple[int | None, int | None]:
    """Return size and checksum of a checkpoint that was just loaded, so it is whole."""
    listed = store.index.entries.get(name)
    if listed is not None and listed.crc32:
        return listed.size, listed.crc32
    storage = store.storage
    if isinstance(storage, LocalStorage) and is_checkpoint_directory(storage.directory / name):
        manifest = read_manifest(storage.directory / name)
        return manifest.size, manifest.crc32
    with storage.open(name) as file:
        return storage.size(name), file_checksum(file)
