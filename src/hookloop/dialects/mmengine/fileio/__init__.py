"""``mmengine.fileio``: small files, by the ending of their name."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

__all__ = ["dump", "exists", "isfile", "join_path", "list_from_file", "load"]


def load(file: str | Path, file_format: str | None = None, **kwargs: object) -> object:
    """Read JSON or YAML; a pickle would run code, so it is refused."""
    kind = file_format or Path(file).suffix[1:]
    text = Path(file).read_text(encoding="utf-8")
    if kind == "json":
        return json.loads(text)
    if kind in ("yaml", "yml"):
        return yaml.safe_load(text)
    raise TypeError(f"Unsupported format: {kind}. Use json or yaml.")


def dump(obj: object, file: str | Path, file_format: str | None = None, **kwargs: object) -> None:
    """Write JSON or YAML."""
    kind = file_format or Path(file).suffix[1:]
    if kind not in ("json", "yaml", "yml"):
        raise TypeError(f"Unsupported format: {kind}. Use json or yaml.")
    text = json.dumps(obj, default=str) if kind == "json" else yaml.safe_dump(obj)
    Path(file).write_text(text, encoding="utf-8")


def list_from_file(filename: str | Path, encoding: str = "utf-8", prefix: str = "") -> list[str]:
    """Read a file's lines."""
    return [prefix + line for line in Path(filename).read_text(encoding=encoding).splitlines()]


def exists(filepath: str | Path, backend_args: object = None) -> bool:
    """Tell whether there is such a file or directory."""
    return Path(filepath).exists()


def isfile(filepath: str | Path, backend_args: object = None) -> bool:
    """Tell whether there is such a file."""
    return Path(filepath).is_file()


def join_path(filepath: str | Path, *filepaths: str | Path, backend_args: object = None) -> str:
    """Join parts of a path."""
    return str(Path(filepath).joinpath(*filepaths))
