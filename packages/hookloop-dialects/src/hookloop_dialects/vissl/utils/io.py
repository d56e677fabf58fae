"""``vissl.utils.io``: read and write small files."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hookloop.dialects import append, drafted
from hookloop.errors import DataError


def save_file(data: Any, filename: str, append_to_json: bool = True, verbose: bool = True) -> None:  # noqa: ANN401 - any data
    """Write data in the form that the ending names: .json, .yaml, .npy or .pkl.

    Args:
        data: The data.
        filename: The file.
        append_to_json: Whether a JSON file gets a further line instead of a new content.
        verbose: Ignored: nothing is logged.
    """
    path = Path(filename)
    if path.suffix == ".json" and append_to_json:
        append(path, json.dumps(data, sort_keys=True) + "\n")
        return
    with drafted(path) as draft:
        if path.suffix == ".json":
            draft.write_text(json.dumps(data, sort_keys=True) + "\n", encoding="utf-8")
        elif path.suffix == ".yaml":
            draft.write_text(yaml.safe_dump(data), encoding="utf-8")
        elif path.suffix == ".npy":
            np.save(draft, data)
        elif path.suffix in (".pkl", ".pickle"):
            draft.write_bytes(pickle.dumps(data))
        else:
            raise DataError(f"save_file cannot write '{path.suffix}': use .json, .yaml or .npy.")


def load_file(filename: str, mmap_mode: Any = None) -> Any:  # noqa: ANN401 - whatever the file has
    """Return the content of a .json, .yaml, .npy or .txt file.

    A pickle is rejected, because loading one runs code that the file contains.
    """
    path = Path(filename)
    if path.suffix == ".npy":
        return np.load(path, mmap_mode=mmap_mode)
    if path.suffix not in (".json", ".yaml", ".txt"):
        raise DataError(f"load_file cannot read '{path.suffix}': use .json, .yaml, .npy or .txt.")
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".txt":
        return text.splitlines(keepends=True)
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


def create_file_symlink(file1: str, file2: str) -> None:
    """Make ``file2`` a link to ``file1``, in place of what was there."""
    target, link = Path(file1), Path(file2)
    with drafted(link) as draft:
        draft.symlink_to(os.path.relpath(target, link.parent))


def makedir(dir_path: str) -> bool:
    """Create a directory unless it exists."""
    Path(dir_path).mkdir(parents=True, exist_ok=True)
    return True
