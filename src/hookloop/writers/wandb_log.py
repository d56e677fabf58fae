"""Reads the transaction log that wandb keeps of a run: what an offline run holds."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

BLOCK = 32768
HEADER = 7
WHOLE, LAST = 1, 4


def read_rows(directory: Path, run_id: str) -> Iterator[Mapping[str, object]]:
    """Yield the rows of history of a run, from all parts of it under a directory, in order."""
    from wandb.proto import wandb_internal_pb2

    # Two parts that began in the same second differ by a number at the end.
    for path in sorted(directory.glob(f"wandb/*run-*-{run_id}*/run-{run_id}.wandb")):
        for content in _contents(path.read_bytes()):
            record = wandb_internal_pb2.Record()  # type: ignore[attr-defined]
            record.ParseFromString(content)
            if record.WhichOneof("record_type") == "history":
                yield {
                    item.key or "/".join(item.nested_key): json.loads(item.value_json)
                    for item in record.history.item
                }


def _contents(data: bytes) -> Iterator[bytes]:
    """Yield the records of a file in blocks, as LevelDB's log has them; one cut off ends it."""
    at, part = HEADER, b""
    while at + HEADER <= len(data):
        left = BLOCK - at % BLOCK
        if left < HEADER:  # Too small for another record: filled up with zeros.
            at += left
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + HEADER])
        piece = data[at + HEADER : at + HEADER + size]
        if kind == 0 or len(piece) < size:
            return
        part += piece
        at += HEADER + size
        if kind in (WHOLE, LAST):
            yield part
            part = b""
