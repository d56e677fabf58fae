"""What a file of tensors may be, however it was made: no larger in memory than on disk.

`torch.load(weights_only=True)` runs no code. It does believe a file about sizes: compressed parts,
tensors that repeat one number a billion times, containers that hold each other again and again.
What is rejected here is a ValueError, with the reason; reading adds the name of the file.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterable, Mapping
from typing import BinaryIO

from torch import Tensor, strided

from hookloop.checkpoint.sums import open_archive

DEEPEST = 100
"""Containers inside each other."""

MOST_ENTRIES = 20_000_000
"""Values in all containers, each counted as often as it occurs."""

SPARE_BYTES = 1 << 26
"""What tensors may take on top of four times the size of the file, for those that share memory."""

HEADER = 30
"""Bytes before the name of each part of an archive."""

_MAKES_BYTES = re.compile(rb"c(?:__builtin__|builtins)\nbytearray\n")


def check_archive(file: BinaryIO, size: int) -> None:
    """Reject an archive that is larger than it looks, before anything of it is unpacked.

    Args:
        file: The open file; any other kind of file passes.
        size: Its bytes.
    """
    archive = open_archive(file)
    if archive is None:
        return
    entries = archive.infolist()
    if any(one.compress_type != zipfile.ZIP_STORED or one.flag_bits & 1 for one in entries):
        raise ValueError("its parts are compressed or encrypted, as torch.save never does.")
    if archive.comment:
        raise ValueError("the archive has a comment, as torch.save never writes one.")
    if sum(one.file_size for one in entries) > size:
        raise ValueError("its parts are larger than the file, so they overlap.")
    for one in entries:
        if one.filename.endswith("/data.pkl") and _MAKES_BYTES.search(_raw(file, one)):
            raise ValueError("it holds a bytearray, whose size need not be in the file.")


def _raw(file: BinaryIO, entry: zipfile.ZipInfo) -> bytes:
    """Read a part that is not compressed; whether it is damaged is not asked here."""
    file.seek(entry.header_offset + HEADER - 4)
    lengths = struct.unpack("<HH", file.read(4))  # Of the name and of what follows it.
    file.seek(sum(lengths), 1)
    return file.read(entry.file_size)


def check_contents(value: object, size: int) -> None:
    """Reject contents that would grow when somebody walks through them or copies them.

    Args:
        value: What was loaded.
        size: Bytes of the file.
    """
    tensors: dict[tuple[object, ...], int] = {}
    _count(value, {}, tensors, 0)
    if sum(tensors.values()) > 4 * size + SPARE_BYTES:
        raise ValueError(
            f"its tensors say that they hold {sum(tensors.values()) / 1e6:,.0f} MB, in a file of "
            f"{size / 1e6:,.1f} MB."
        )


def _count(
    value: object, known: dict[int, int], tensors: dict[tuple[object, ...], int], depth: int
) -> int:
    """Count the values in a container as often as they occur, and gather its tensors."""
    if isinstance(value, Tensor):
        tensors[_identity(value)] = value.numel() * value.element_size()
        return 1
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        return 1
    if id(value) in known:
        if known[id(value)] < 0:
            raise ValueError("a container in it contains itself.")
        return known[id(value)]
    if depth >= DEEPEST:
        raise ValueError(f"its containers are more than {DEEPEST} deep.")
    known[id(value)] = -1
    count = 1 + sum(_count(one, known, tensors, depth + 1) for one in _parts(value))
    if count > MOST_ENTRIES:
        raise ValueError(f"its containers hold more than {MOST_ENTRIES:,} values.")
    known[id(value)] = count
    return count


def _parts(value: Iterable[object]) -> Iterable[object]:
    # A tuple can be a key.
    return [*value, *value.values()] if isinstance(value, Mapping) else value


def _identity(tensor: Tensor) -> tuple[object, ...]:
    """Return what makes two tensors the same numbers in memory."""
    if tensor.device.type == "meta":
        raise ValueError("it has a tensor without numbers, of the device 'meta'.")
    if tensor.layout is not strided:
        return (id(tensor),)
    return (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
