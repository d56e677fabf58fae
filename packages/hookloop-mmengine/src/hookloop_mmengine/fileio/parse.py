"""``mmengine.fileio.parse``: lists and dicts in text files."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from itertools import islice

from hookloop_mmengine.fileio.backends import Location
from hookloop_mmengine.fileio.io import Args, _chosen


def list_from_file(
    filename: Location,
    prefix: str = "",
    offset: int = 0,
    max_num: int = 0,
    encoding: str = "utf-8",
    file_client_args: Args = None,
    backend_args: Args = None,
) -> list[str]:
    """Read the lines of a file.

    Args:
        filename: The file.
        prefix: Put before each line.
        offset: How many lines at the start are skipped.
        max_num: The greatest number of lines; 0 for all.
        encoding: The encoding of the file.
        file_client_args: The older name of ``backend_args``.
        backend_args: The backend of the path, and its arguments.
    """
    lines = StringIO(_chosen(filename, file_client_args, backend_args).get_text(filename, encoding))
    end = offset + max_num if max_num > 0 else None
    # Not splitlines(), which also splits at form feeds and Unicode separators inside a line.
    return [prefix + line.rstrip("\n\r") for line in islice(lines, offset, end)]


def dict_from_file(
    filename: Location,
    key_type: Callable[[str], object] = str,
    encoding: str = "utf-8",
    file_client_args: Args = None,
    backend_args: Args = None,
) -> dict[object, str | list[str]]:
    """Read a dict from a file with a key and its values, one or more, on each line.

    Args:
        filename: The file.
        key_type: Converts the keys.
        encoding: The encoding of the file.
        file_client_args: The older name of ``backend_args``.
        backend_args: The backend of the path, and its arguments.
    """
    text = _chosen(filename, file_client_args, backend_args).get_text(filename, encoding)
    found: dict[object, str | list[str]] = {}
    for number, line in enumerate(StringIO(text), 1):
        key, *values = line.split() or [""]
        if not values:
            raise AssertionError(f"Line {number} of {filename} needs a key and a value: {line!r}")
        found[key_type(key)] = values if len(values) > 1 else values[0]
    return found
