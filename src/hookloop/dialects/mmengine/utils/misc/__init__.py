"""``mmengine.utils.misc``: the small functions that hook files import from there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

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
    """Tell whether all of a sequence is of a type."""
    kind = seq_type or Sequence
    return isinstance(seq, kind) and all(isinstance(one, expected_type) for one in seq)  # type: ignore[attr-defined]


def is_list_of(seq: object, expected_type: type | tuple[type, ...]) -> bool:
    """Tell whether something is a list of a type."""
    return is_seq_of(seq, expected_type, list)


def is_tuple_of(seq: object, expected_type: type | tuple[type, ...]) -> bool:
    """Tell whether something is a tuple of a type."""
    return is_seq_of(seq, expected_type, tuple)


def is_str(x: object) -> bool:
    """Tell whether something is text."""
    return isinstance(x, str)


def mkdir_or_exist(dir_name: str | Path, mode: int = 0o777) -> None:
    """Make a directory unless it is there."""
    if dir_name != "":
        Path(dir_name).expanduser().mkdir(mode, parents=True, exist_ok=True)


def scandir(
    dir_path: str | Path, suffix: str | tuple[str, ...] | None = None, recursive: bool = False
) -> Iterable[str]:
    """Yield the files of a directory, relative to it."""
    home = Path(dir_path)
    for path in sorted(home.rglob("*") if recursive else home.iterdir()):
        if path.is_file() and (suffix is None or path.name.endswith(suffix)):
            yield str(path.relative_to(home))


def get_object_from_string(obj_name: str) -> object:
    """Import what a dotted path names."""
    parts = obj_name.split(".")
    found: object = None
    for place in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:place]))
        except ModuleNotFoundError:  # The rest of the path are attributes.
            continue
        for name in parts[place:]:
            found = getattr(found, name)
        return found
    return None
