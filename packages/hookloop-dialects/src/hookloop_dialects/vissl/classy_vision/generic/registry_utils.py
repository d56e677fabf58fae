"""``classy_vision.generic.registry_utils``: import all files of a folder, which register parts."""

from __future__ import annotations

import importlib
from pathlib import Path


def import_all_modules(root: str | Path, base_module: str) -> None:
    """Import every module and package in a folder, as parts of a package.

    Args:
        root: The folder.
        base_module: The package that it belongs to.
    """
    for path in sorted(Path(root).iterdir()):
        is_module = path.suffix == ".py" or (path / "__init__.py").is_file()
        if is_module and not path.name.startswith(("_", ".")):
            importlib.import_module(f"{base_module}.{path.stem}")
