"""Limits on a file of tensors: it must not be much larger in memory than on disk.

`torch.load(weights_only=True)` runs no code, but it trusts the sizes in a file: compressed parts,
tensors that repeat one number a billion times, containers that hold each other again and again.
These checks raise a ValueError with the reason; the reader adds the name of the file.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterable, Mapping
from typing import BinaryIO

from torch import Tensor, strided

from hookloop.runs.checksum import open_archive

DEEPEST = 100
"""How deep containers may be nested."""

MOST_ENTRIES = 20_000_000
"""How many values all containers may hold, each counted as often as it occurs."""

SPARE_BYTES = 1 << 26
"""What tensors may take on top of four times the size of the file, for those that share memory."""

HEADER = 30
"""Bytes before the name of each part of an archive."""

# The opcode that looks up bytearray. The unpickler allows it, and a call with a number makes that
# many bytes of nothing.
_MAKES_BYTES = re.compile(rb"c(?:__builtin__|builtins)\nbytearray\n")


def check_archive(file: BinaryIO, size: int) -> None:
    """Reject an archive that is larger than it looks, before it is unpacked.

    Args:
        file: The open file; any other kind of file passes.
        size: Its bytes.
    """
    archive = open_archive(file)
    if archive is None:
        return
    entries = archive.infolist()
    if any(e.compress_type != zipfile.ZIP_STORED or e.flag_bits & 1 for e in entries):
        raise ValueError("its parts are compressed or encrypted, which torch.save never does.")
    # A comment can hold a second end of the archive: zipfile and torch might then each see another.
    if archive.comment:
        raise ValueError("the archive has a comment, which torch.save never writes.")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("its parts are larger than the file, so they overlap.")
    for entry in entries:
        if entry.filename.endswith("/data.pkl") and _MAKES_BYTES.search(_raw(file, entry)):
            raise ValueError("it holds a bytearray, whose size need not be in the file.")


def _raw(file: BinaryIO, entry: zipfile.ZipInfo) -> bytes:
    """Read a part that is not compressed, without checking its CRC-32."""
    # zipfile would raise its own error for damage, which is reported elsewhere in better words.
    file.seek(entry.header_offset + HEADER - 4)
    lengths = struct.unpack("<HH", file.read(4))  # Of the name and of the extra field after it.
    file.seek(sum(lengths), 1)
    return file.read(entry.file_size)


def check_contents(value: object, size: int) -> None:
    """Reject contents that would grow when they are walked through or copied.

    Args:
        value: What was loaded.
        size: Bytes of the file.
    """
    tensors: dict[tuple[object, ...], int] = {}
    _count(value, {}, tensors, 0)
    if sum(tensors.values()) > 4 * size + SPARE_BYTES:
        raise ValueError(
            f"its tensors claim to hold {sum(tensors.values()) / 1e6:,.0f} MB, in a file of "
            f"{size / 1e6:,.1f} MB."
        )


def _count(
    value: object, counts: dict[int, int], tensors: dict[tuple[object, ...], int], depth: int
) -> int:
    """Count the values in a container as often as they occur, and collect its tensors."""
    if isinstance(value, Tensor):
        tensors[_identity(value)] = value.numel() * value.element_size()
        return 1
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        return 1
    # A container that occurs often is walked once: walking each occurrence is the attack itself.
    if id(value) in counts:
        if counts[id(value)] < 0:
            raise ValueError("a container in it contains itself.")
        return counts[id(value)]
    if depth >= DEEPEST:
        raise ValueError(f"its containers are more than {DEEPEST} deep.")
    counts[id(value)] = -1  # It is being counted.
    count = 1 + sum(_count(part, counts, tensors, depth + 1) for part in _parts(value))
    if count > MOST_ENTRIES:
        raise ValueError(f"its containers hold more than {MOST_ENTRIES:,} values.")
    counts[id(value)] = count
    return count


def _parts(value: Iterable[object]) -> Iterable[object]:
    # Keys count as well: a key can be a tuple, which holds more values.
    return [*value, *value.values()] if isinstance(value, Mapping) else value


def _identity(tensor: Tensor) -> tuple[object, ...]:
    """Return a key that is equal for two tensors over the same numbers in memory."""
    if tensor.device.type == "meta":
        raise ValueError("it has a tensor without numbers, of the device 'meta'.")
    if tensor.layout is not strided:
        return (id(tensor),)
    return (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
