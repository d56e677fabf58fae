"""Reads the transaction log of an offline wandb run, for which wandb has no public reader."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

# The format of LevelDB's log: blocks of records, each with a checksum, a size and a kind. A record
# that crosses a block is split into pieces. The file itself starts with a header of the same size.
BLOCK = 32768
HEADER = 7
WHOLE, LAST = 1, 4


def read_rows(directory: Path, run_id: str) -> Iterator[Mapping[str, object]]:
    """Yield the history rows of all parts of a run in a directory, in order."""
    from wandb.proto import wandb_internal_pb2

    # The names of two parts that started in the same second differ by a number at the end.
    for path in sorted(directory.glob(f"wandb/*run-*-{run_id}*/run-{run_id}.wandb")):
        for content in _split_records(path.read_bytes()):
            record = wandb_internal_pb2.Record()  # type: ignore[attr-defined]
            record.ParseFromString(content)
            if record.WhichOneof("record_type") == "history":
                yield {
                    item.key or "/".join(item.nested_key): json.loads(item.value_json)
                    for item in record.history.item
                }


def _split_records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a log; the first incomplete one ends it, as after a kill."""
    at, part = HEADER, b""
    while at + HEADER <= len(data):
        left = BLOCK - at % BLOCK
        if left < HEADER:  # Too small for another record: padded with zeros.
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
