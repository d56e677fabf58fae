"""Write a checkpoint of a sharded model: a directory in torch's own format, made safe.

Each save has a new hidden directory. Every rank writes its shards into it, without a word to the
others, and then, as its last act, a report with the checksums. When all reports are there, the
first rank adds the list of files and renames the directory. So a directory that has its name is
whole, whenever and whichever rank was killed.

    stage(...)   in the thread that trains: one exchange between the ranks, nothing on disk
    write(...)   in a thread of each rank: files only, no exchange between the ranks

``torch.distributed.checkpoint.load`` and ``dcp_to_torch_save`` read the directory, too.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import secrets
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from hookloop.checkpoint.shards.manifest import encode_manifest
from hookloop.checkpoint.shards.parts import nested, split
from hookloop.checkpoint.store.storage import METADATA, put_in_place, sync_to_disk
from hookloop.checkpoint.store.writing import SummingFile, WrittenFile
from hookloop.errors import CheckpointError
from hookloop.runs.checkpoint_names import MANIFEST

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup
    from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
    from torch.distributed.checkpoint.metadata import Metadata
    from torch.distributed.checkpoint.planner import SavePlan

STATE = "state.pt"
"""The file of everything that is not a shard; not ``.pth``, by which runs are recognized."""

POLL = 0.02
"""Seconds between two looks for the reports of other ranks."""

TIMEOUT = 600.0
"""Seconds that the first rank waits for the others."""


@dataclass
class Staged:
    """A checkpoint that is planned and still in memory.

    Attributes:
        rank: This rank.
        size: The number of ranks.
        token: Makes the hidden directory of this save a new one.
        nbytes: Bytes that this rank will write, about.
    """

    rank: int
    size: int
    token: str
    nbytes: int
    facts: Mapping[str, object] = field(repr=False)
    rest: Mapping[str, object] = field(repr=False)
    plan: SavePlan = field(repr=False)
    planner: DefaultSavePlanner = field(repr=False)
    metadata: Metadata = field(repr=False)
    # Reports that were read, by directory: an attempt that fails later need not wait again.
    reports: dict[Path, dict[int, bytes]] = field(default_factory=dict, repr=False)


def stage(
    checkpoint: Mapping[str, object],
    group: ProcessGroup | None = None,
    facts: Mapping[str, object] | None = None,
) -> Staged:
    """Plan which rank writes what; all ranks of the group must call it.

    Args:
        checkpoint: What `Snapshot.take` has copied, the optimizers with names of parameters.
        group: The ranks; None for a process alone.
        facts: Plain values for the manifest, such as the strategy and the mesh.

    Raises:
        CheckpointError: On all ranks, if the shards do not fit together.
    """
    from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
    from torch.distributed.checkpoint.filesystem import FileSystemWriter

    rank, size = (group.rank(), group.size()) if group is not None else (0, 1)
    planner = DefaultSavePlanner()
    try:
        state, tensors, paths = split(checkpoint)
        planner.set_up_planner(nested(tensors, paths), None, rank == 0)
        local: SavePlan | str = planner.create_local_plan()
    except Exception as error:  # noqa: BLE001 - the others must hear of it, or they would wait
        local = f"rank {rank}: {type(error).__name__}: {error}"
    offers = _exchange((local, secrets.token_hex(4)), group)
    if problems := [plan for plan, _ in offers if isinstance(plan, str)]:
        raise CheckpointError(f"The shards cannot be saved. {problems[0]}")
    plans = [cast("SavePlan", plan) for plan, _ in offers]
    try:
        plans, metadata = planner.create_global_plan(plans)
    except Exception as error:  # The same plans on all ranks, so the same error.
        raise CheckpointError(f"The shards do not fit together: {error}") from error
    # The path does not matter here: this names the files of each rank.
    plan = FileSystemWriter("").prepare_global_plan(plans)[rank]
    return Staged(
        rank,
        size,
        token=offers[0][1],
        nbytes=sum(tensor_bytes(item) for item in plan.items),
        facts={**(facts or {}), "ranks": size},
        rest={"state": state, "paths": {key: list(path) for key, path in paths.items()}},
        plan=planner.finish_plan(plan),
        planner=planner,
        metadata=metadata,
    )


def write(
    staged: Staged,
    directory: Path,
    timeout: float = TIMEOUT,
    failed: Callable[[], str | None] = lambda: None,
) -> WrittenFile | None:
    """Write the part of this rank; the first rank also waits for the others and completes it.

    May be called again after an error, on the rank that had it.

    Args:
        staged: The checkpoint.
        directory: Where it will be, on a file system that all ranks share.
        timeout: Seconds that the first rank waits for the others.
        failed: Asked while the first rank waits; a text ends the wait with this reason.

    Returns:
        On the first rank the size of all files and the checksum of the manifest, otherwise None.

    Raises:
        CheckpointError: If a rank has failed, or has not reported in time.
    """
    hidden = staged_directory(directory, staged.token)
    for name in (f"part_{staged.rank}.json", f"failed_{staged.rank}"):
        (hidden / name).unlink(missing_ok=True)  # Of an earlier attempt.
    hidden.mkdir(parents=True, exist_ok=True)
    try:
        report = _write_part(staged, hidden)
    except Exception as error:
        # So that the first rank need not wait. On a full disk even this may fail.
        with suppress(OSError):
            (hidden / f"failed_{staged.rank}").write_text(f"{error}"[:1000])
        raise
    if staged.rank > 0:
        write_durably(hidden / f"part_{staged.rank}.json", report)
        return None
    reports = staged.reports.setdefault(hidden, {})
    _wait_for_reports(hidden, staged, reports, timeout, failed)
    ordered = [report, *(reports[rank] for rank in range(1, staged.size))]
    return _complete(staged, hidden, directory, [json.loads(one) for one in ordered])


def abandon(staged: Staged, directory: Path) -> None:
    """Delete what was written of a save that is given up; the first rank does it."""
    if staged.rank == 0:
        shutil.rmtree(staged_directory(directory, staged.token), ignore_errors=True)


def staged_directory(directory: Path, token: str) -> Path:
    """Return the hidden directory in which a save is prepared."""
    return directory.parent / f".{directory.name}.{token}.staged"


def tensor_bytes(item: object) -> int:
    """Return the bytes of a part of a tensor that is planned to be written."""
    data = item.tensor_data  # type: ignore[attr-defined]
    return int(data.chunk.sizes.numel() * data.properties.dtype.itemsize) if data else 0


def _exchange(offer: tuple[object, str], group: ProcessGroup | None) -> list[tuple[object, str]]:
    if group is None:
        return [offer]
    from torch.distributed import all_gather_object

    offers: list[tuple[object, str]] = [offer] * group.size()
    all_gather_object(offers, offer, group=group)
    return offers


def _write_part(staged: Staged, hidden: Path) -> bytes:
    """Write the files of this rank; return its report: their checksums, and where tensors are."""
    from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemWriter

    sums: dict[str, WrittenFile] = {}

    class SummingFiles(FileSystem):
        @contextmanager
        def create_stream(  # type: ignore[override]
            self, path: str | os.PathLike[str], mode: str
        ) -> Iterator[SummingFile]:
            with _summed(Path(path), sums) as file:
                yield file

    writer = FileSystemWriter(hidden, per_thread_copy_ahead=0)
    writer.fs = SummingFiles()
    results = writer.write_data(staged.plan, staged.planner).value()
    if staged.rank == 0:
        with _summed(hidden / STATE, sums) as file:
            file.save(dict(staged.rest))
            os.fsync(file.fileno())
    stored = [
        [
            *(one.index.fqn, list(one.index.offset or ()), one.storage_data.relative_path),
            *(one.storage_data.offset, one.storage_data.length),
        ]
        for one in results
    ]
    return json.dumps({"files": sums, "stored": stored}).encode()


@contextmanager
def _summed(path: Path, sums: dict[str, WrittenFile]) -> Iterator[SummingFile]:
    """Open a file for writing; note its size and checksum when it is closed."""
    # Written again, an old one is deleted and not truncated: ext4 would flush it twice.
    path.unlink(missing_ok=True)
    with path.open("xb") as raw:
        file = SummingFile(raw)
        with file.raising_own_errors():
            yield file
    sums[path.name] = file.written


def _wait_for_reports(
    hidden: Path,
    staged: Staged,
    reports: dict[int, bytes],
    timeout: float,
    failed: Callable[[], str | None],
) -> None:
    """Collect the reports of the other ranks."""
    end, pause = time.monotonic() + timeout, threading.Event()
    while True:
        missing = [rank for rank in range(1, staged.size) if rank not in reports]
        for rank in missing:
            with suppress(FileNotFoundError):
                reports[rank] = (hidden / f"part_{rank}.json").read_bytes()
            with suppress(FileNotFoundError):
                reason = f"rank {rank} failed: {(hidden / f'failed_{rank}').read_text()}"
                raise CheckpointError(f"'{hidden}' is not complete: {reason}")
        if all(rank in reports for rank in missing):
            return
        if reason := failed() or "":
            raise CheckpointError(f"'{hidden}' is not complete: {reason}")
        if time.monotonic() > end:
            ranks = ", ".join(str(rank) for rank in missing if rank not in reports)
            raise CheckpointError(
                f"'{hidden}' is not complete: no report of rank {ranks} in {timeout:g} s. All "
                "ranks must write to the same file system."
            )
        pause.wait(POLL)


def _complete(
    staged: Staged, hidden: Path, directory: Path, parts: list[dict[str, Any]]
) -> WrittenFile:
    """Describe the shards, list the files, and give the directory its name."""
    files = {name: WrittenFile(*one) for part in parts for name, one in part["files"].items()}
    for name, one in files.items():
        path = hidden / name
        if not path.is_file() or path.stat().st_size != one.size:
            raise CheckpointError(f"'{path}' is not what its rank has written.")
    data = _encode_metadata(staged, [one for part in parts for one in part["stored"]])
    write_durably(hidden / METADATA, data)
    files[METADATA] = WrittenFile(len(data), zlib.crc32(data))
    for path in [*hidden.glob("part_*.json"), *hidden.glob("failed_*")]:
        path.unlink()
    manifest = encode_manifest(files, staged.facts)
    write_durably(hidden / MANIFEST, manifest)
    put_in_place(hidden, directory)
    return WrittenFile(sum(one.size for one in files.values()), zlib.crc32(manifest))


def _encode_metadata(staged: Staged, stored: list[list[Any]]) -> bytes:
    """Return torch's description of the shards, with the place of each in its file."""
    from torch.distributed.checkpoint.filesystem import CURRENT_DCP_VERSION, _StorageInfo
    from torch.distributed.checkpoint.metadata import MetadataIndex, TensorStorageMetadata

    places = {
        MetadataIndex(name, torch.Size(offset)): _StorageInfo(*place)
        for name, offset, *place in stored
    }
    for name, tensor in staged.metadata.state_dict_metadata.items():
        chunks = tensor.chunks if isinstance(tensor, TensorStorageMetadata) else []
        if not all(MetadataIndex(name, chunk.offsets) in places for chunk in chunks):
            raise CheckpointError(f"A part of '{name}' was planned and not written by any rank.")
    whole = dataclasses.replace(staged.metadata, storage_data=places, version=CURRENT_DCP_VERSION)
    return pickle.dumps(whole)


def write_durably(path: Path, data: bytes) -> None:
    """Write a file; when it has its name, it and the name are on the disk."""
    staged = path.with_name(f".{path.name}.tmp")
    with staged.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(staged, path)
    sync_to_disk(path.parent)
