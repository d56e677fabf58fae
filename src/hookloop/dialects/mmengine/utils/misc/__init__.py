"""``mmengine.utils.misc``: the small functions that hook files import from there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

__all__ = [
    "get_object_from_string",
    "is_list_of",
    "is_seq_of",
    "is_str",
    "is_tuple_of",
    "mkdir_or_exist",
    "scandir",
]


def is_seq_of(
    seq: object, expected_type: type | tuple[type, ...], seq_type: type | None = None
) -> bool:
    """Return whether a value is a sequence whose entries are all of a type."""
    kind = seq_type or Sequence
    return isinstance(seq, kind) and all(isinstance(entry, expected_type) for entry in seq)  # type: ignore[attr-defined]


def is_list_of(seq: object, expected_type: type | tuple[type, ...]) -> bool:
    """Return whether a value is a list of a type."""
    return is_seq_of(seq, expected_type, list)


def is_tuple_of(seq: object, expected_type: type | tuple[type, ...]) -> bool:
    """Return whether a value is a tuple of a type."""
    return is_seq_of(seq, expected_type, tuple)


def is_str(x: object) -> bool:
    """Return whether a value is a string."""
    return isinstance(x, str)


def mkdir_or_exist(dir_name: str | Path, mode: int = 0o777) -> None:
    """Make a directory with its parents, unless it exists."""
    # The directory of a bare file name is "", which would be the current one.
    if dir_name != "":
        Path(dir_name).expanduser().mkdir(mode, parents=True, exist_ok=True)


def scandir(
    dir_path: str | Path,
    suffix: str | tuple[str, ...] | None = None,
    recursive: bool = False,
    case_sensitive: bool = True,
) -> Iterable[str]:
    """Yield the paths of a directory's files, relative to it; hidden files are left out."""
    if suffix is not None and not isinstance(suffix, str | tuple):
        raise TypeError('"suffix" must be a string or tuple of strings')
    if suffix is not None and not case_sensitive:
        listed = (suffix,) if isinstance(suffix, str) else suffix
        suffix = tuple(ending.lower() for ending in listed)
    directory = Path(dir_path)
    # Sorted, so that the order does not depend on the file system.
    for path in sorted(directory.rglob("*") if recursive else directory.iterdir()):
        name = path.name if case_sensitive else path.name.lower()
        is_wanted = suffix is None or name.endswith(suffix)
        if path.is_file() and not name.startswith(".") and is_wanted:
            yield str(path.relative_to(directory))


def get_object_from_string(obj_name: str) -> object:
    """Return the object that a dotted path names, or None if there is none."""
    parts = obj_name.split(".")
    found: object = None
    for index, name in enumerate(parts):
        inner = getattr(found, name, None)
        # An attribute wins over a submodule of its name: mmcv.ops.nms is the function.
        if inner is None or isinstance(inner, ModuleType):
            if index and not isinstance(found, ModuleType):
                return None
            try:
                inner = import_module(".".join(parts[: index + 1]))
            except ImportError:
                return None
        found = inner
    return found
