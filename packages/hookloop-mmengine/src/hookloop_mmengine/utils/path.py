"""``mmengine.utils.path``: directories."""

from __future__ import annotations

from pathlib import Path


def mkdir_or_exist(dir_name: str | Path, mode: int = 0o777) -> None:
    """Make a directory with its parents, unless it exists."""
    # The directory of a bare file name is "", which would be the current one.
    if dir_name != "":
        Path(dir_name).expanduser().mkdir(mode, parents=True, exist_ok=True)
