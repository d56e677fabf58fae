"""Read config files of MMEngine: Python in both styles, YAML and JSON, with their bases."""

from __future__ import annotations

import ast
import json
import os
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

import yaml

from hookloop.errors import nearest
from hookloop_mmengine.config.config_dict import ConfigDict, merged

BASE = "_base_"
_ENVIRONMENT = re.compile(r"""\{\{['"]?\s*\$(\w+)\s*:\s*(\S*?)\s*['"]?\}\}""")
_REFERENCE = re.compile(r"\{\{\s*_base_\.([\w.]+)\s*\}\}")


@dataclass(frozen=True)
class Filling:
    """What in double braces is replaced.

    Attributes:
        predefined: ``{{ fileDirname }}`` and the other predefined variables.
        environment: ``{{$NAME:default}}``.
    """

    predefined: bool = True
    environment: bool = True


def read_file(path: Path, *, fill: Filling | None = None) -> dict[str, object]:
    """Read a config file with all its bases.

    Args:
        path: The file.
        fill: What in double braces is replaced; by default everything.
    """
    fill = fill or Filling()
    if not path.is_file():
        # The names in the directory, so that the message can suggest the nearest.
        options = (entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else ()
        raise FileNotFoundError(f'file "{path}" does not exist.{nearest(path.name, options)}')
    if path.suffix == ".py":
        return _read_python(path, fill)
    if path.suffix in (".yaml", ".yml"):
        own = yaml.safe_load(_read_text(path, fill))
    elif path.suffix == ".json":
        own = json.loads(_read_text(path, fill))
    else:
        raise OSError(f"Only py, yml, yaml and json are supported, not '{path.name}'.")
    bases = own.pop(BASE, [])
    return merged(_read_bases(path, bases, fill), own)


def _read_python(path: Path, fill: Filling) -> dict[str, object]:
    text = _read_text(path, fill)
    tree = ast.parse(text, str(path))
    base = _read_bases(path, _bases_of(tree), fill)
    # Configs use `_base_.lr` in expressions and `__file__` for paths.
    scope: dict[str, object] = {"__file__": str(path), BASE: ConfigDict(base)}
    lazy = _take_read_base(tree)
    for module, level in lazy:
        inherited = read_file(_relative(path, module, level), fill=fill)
        base = merged(base, inherited)
        # The newer style uses inherited names like imported ones: a.update(dict(b=3)).
        scope |= inherited
    # {{_base_.a.b}} is valid Python, a set of a set, so the first parse accepts it.
    text = _REFERENCE.sub(r"_base_.\1", text)
    if not lazy:
        tree = ast.parse(text, str(path))
    tree.body = [node for node in tree.body if not _assigns_base(node)]
    exec(compile(tree, str(path), "exec"), scope)  # A Python config is code, in MMEngine too.
    return merged(base, {key: value for key, value in scope.items() if _is_entry(key, value)})


def _bases_of(tree: ast.Module) -> object:
    for node in tree.body:
        if _assigns_base(node):
            # A literal, because the bases are read before the file is executed.
            return ast.literal_eval(cast("ast.Assign", node).value)
    return []


def _assigns_base(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == BASE


def _take_read_base(tree: ast.Module) -> list[tuple[str, int]]:
    """Remove ``with read_base(): from .x import *`` from a file; return what it imports."""
    found: list[tuple[str, int]] = []
    rest: list[ast.stmt] = []
    for node in tree.body:
        called = node.items[0].context_expr if isinstance(node, ast.With) else None
        if isinstance(called, ast.Call) and getattr(called.func, "id", "") == "read_base":
            body = cast("ast.With", node).body
            imports = [line for line in body if isinstance(line, ast.ImportFrom)]
            found += [(line.module or "", line.level) for line in imports]
        else:
            rest.append(node)
    tree.body = rest
    return found


def _relative(path: Path, module: str, level: int) -> Path:
    directory = path.parent
    for _ in range(level - 1):
        directory = directory.parent
    return directory.joinpath(*module.split(".")).with_suffix(".py")


def _read_bases(path: Path, bases: object, fill: Filling) -> dict[str, object]:
    base: dict[str, object] = {}
    for name in [bases] if isinstance(bases, str) else cast("list[str]", bases):
        found = read_file(path.parent / name, fill=fill)
        # Bases are equals: whichever came first would win by accident.
        if twice := base.keys() & found.keys():
            raise KeyError(f"Duplicate key is not allowed among bases. Duplicate keys: {twice}")
        base |= found
    return base


def _read_text(path: Path, fill: Filling) -> str:
    """Read a file, with ``{{ fileDirname }}`` and the other predefined variables replaced."""
    text = path.read_text(encoding="utf-8")
    variables = {
        "fileDirname": path.parent,
        "fileBasename": path.name,
        "fileBasenameNoExtension": path.stem,
        "fileExtname": path.suffix,
    }
    for name, value in variables.items() if fill.predefined else ():
        # Backslashes of Windows paths would be escapes, here and in the config's strings.
        text = re.sub(r"\{\{\s*" + name + r"\s*\}\}", str(value).replace("\\", "/"), text)
    return _ENVIRONMENT.sub(_from_environment, text) if fill.environment else text


def _from_environment(found: re.Match[str]) -> str:
    """Return what ``{{$NAME:default}}`` stands for: a variable of the environment, or a default."""
    name, default = found.groups()
    value = os.environ.get(name, default)
    if not value:
        raise KeyError(
            f"`{name}` cannot be found in `os.environ`. Please set `{name}` in environment or give "
            "a default value."
        )
    return value


def _is_entry(key: str, value: object) -> bool:
    # Imports and helpers share the namespace of the file with its entries.
    is_code = isinstance(value, types.ModuleType | types.FunctionType | type)
    return not key.startswith("__") and key not in (BASE, "read_base") and not is_code


def import_customs(tree: Mapping[str, object]) -> None:
    """Import the modules that ``custom_imports`` names, so that they register their classes."""
    entry = tree.get("custom_imports")
    if not isinstance(entry, Mapping):
        return
    names = entry.get("imports", [])
    for name in [names] if isinstance(names, str) else names:
        try:
            import_module(name)
        except ImportError:
            if not entry.get("allow_failed_imports"):
                raise
