"""Load a config file: merge its bases, apply overrides, resolve references."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from hookloop.config.reading.interpolate import interpolate
from hookloop.config.reading.overrides import override
from hookloop.config.reading.python_file import read_python
from hookloop.config.reading.yaml_file import read_yaml
from hookloop.config.schema import KEYS
from hookloop.config.tree import REPLACE, Config, Tree
from hookloop.errors import ArgumentError, ConfigError, Problem, nearest
from hookloop.runs.layout import RunDir
from hookloop.runs.moved_settings import MOVED, moved

if TYPE_CHECKING:
    from torch import nn

    from hookloop.config.loaded_model import LoadedModel

_log = logging.getLogger("hookloop")

BASE = "_base_"
IMPORT_PATH = "import_path"


@overload
def load(path: str | Path, overrides: Sequence[str] = (), *, only_data: bool = False) -> Config: ...
@overload
def load(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    checkpoint: str | Path,
    model: nn.Module | None = None,
    device: str = "auto",
) -> LoadedModel: ...
def load(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    only_data: bool = False,
    checkpoint: str | Path | None = None,
    model: nn.Module | None = None,
    device: str = "auto",
) -> Config | LoadedModel:
    """Read a config file; with ``checkpoint``, load the trained model of a run.

    Without ``checkpoint``, the names in the config are not looked up yet.

    A file that cannot be read at all is rejected at once. Problems that leave the rest readable are
    kept in the result, and raised by `build` together with all others.

    Args:
        path: A YAML or Python file, or a run directory, whose written config is read.
        overrides: Changes, each ``a.b=value``; for the same key, the last one wins.
        only_data: Whether to reject Python files, even as a base, because reading one runs it.
        checkpoint: ``"best"``, ``"last"``, or the name or path of a checkpoint: the model is built
            from the config of the run in ``path``, and gets its weights.
        model: The model, with ``checkpoint``; it has to be given if the run has no config.
        device: Where the model is put, with ``checkpoint``.
    """
    if checkpoint is not None:
        from hookloop.config.loaded_model import load_model

        return load_model(path, overrides, checkpoint, model, device)
    if model is not None:
        raise ArgumentError("load(model=) needs checkpoint=: 'best', 'last' or a file.")
    config = _read(_find(Path(path), None), (), only_data=only_data)
    config.marks[()] = show(config.path)
    # References last, so that a file can refer to what an override sets.
    for text in overrides:
        override(config, text)
    interpolate(config)
    for warning in config.warnings:
        _log.warning("%s", warning)
    return config


def read(path: str | Path) -> Config:
    """Read a config file and its bases as they are written: no reference is resolved.

    Python files are rejected, because reading one runs it.
    """
    return _read(_find(Path(path), None), (), only_data=True)


def show(path: Path) -> str:
    """Return a path as a user would write it: relative if it is below the working directory."""
    full = Path(os.path.abspath(path))
    here = Path.cwd()
    return str(full.relative_to(here)) if full.is_relative_to(here) else str(full)


def extend_import_path(directories: Sequence[Path]) -> None:
    """Add directories to the import path of Python, the first one in front.

    They stay, like the directory of a script: training may import a module at any time.
    """
    for directory in reversed(directories):
        if str(directory) not in sys.path:
            sys.path.insert(0, str(directory))


def _read(path: Path, open_files: tuple[Path, ...], *, only_data: bool = False) -> Config:
    # Here and not in `load`, because a base may be a Python file too.
    if only_data and path.suffix == ".py":
        message = "a Python file is not read here: that would run it."
        raise ConfigError([Problem(message, show(path))])
    config = _read_file(path)
    run = RunDir(path.parent)
    if run.config_file == path and (run.holds_run() or run.log_file.exists()):
        _move_settings(config)
    bases = config.tree.pop(BASE, [])
    result = Config({}, path)
    searched = _searched(config, path.parent)
    for base in bases if isinstance(bases, list) else [bases]:
        where = config.where((BASE,))
        if not isinstance(base, str):
            raise ConfigError([Problem(f"'{BASE}' names a file or a list of files.", where)])
        found = _find(path.parent / base, where)
        chain = (*open_files, path)
        if found in chain:
            circle = " -> ".join(show(file) for file in (*chain[chain.index(found) :], found))
            raise ConfigError([Problem(f"'{BASE}' forms a circle: {circle}.", where)])
        inherited = _read(found, chain, only_data=only_data)
        # A base names classes beside itself, which the child has to find as well.
        searched += _searched(inherited, found.parent)
        result.absorb(inherited)
    result.absorb(config)
    # Written out only if it says more than the default, the directory of the file itself.
    if bases and set(searched) != {str(path.parent)}:
        result.tree[IMPORT_PATH] = list(dict.fromkeys(searched))
    # After the merge, which reads them.
    _strip_merge_keys(result.tree)
    return result


def _move_settings(config: Config) -> None:
    """Bring the config of a run of an earlier version into the form of this one."""
    old = [name for name in config.tree if name in MOVED]
    if not old:
        return
    tree = moved(config.tree)
    config.tree.clear()
    config.tree.update(tree)
    for key in [key for key in config.marks if key and key[0] in old]:
        config.marks[(*MOVED[str(key[0])], *key[1:])] = config.marks.pop(key)


def _searched(config: Config, home: Path) -> list[str]:
    """List the import directories of a file: relative to itself, so that a child finds them."""
    written = config.tree.get(IMPORT_PATH, str(home))
    entries = [str(entry) for entry in (written if isinstance(written, list) else [written])]
    # A reference is resolved later; its value is usually an absolute path.
    return [entry if "${" in entry else os.path.abspath(home / entry) for entry in entries]


def _read_file(path: Path) -> Config:
    shown = show(path)
    try:
        if path.suffix == ".py":
            # Before the file is run, because it imports its neighbours.
            extend_import_path([path.parent, Path.cwd()])
            # With those of before, so that a function of that name is rejected too.
            return read_python(path, shown, (*KEYS, *MOVED))
        # JSON as well, which YAML includes.
        return read_yaml(path, shown)
    except UnicodeDecodeError as error:
        raise ConfigError([Problem(f"not a text file in UTF-8: {error.reason}.", shown)]) from error
    except PermissionError as error:
        raise ConfigError([Problem("permission to read this file is denied.", shown)]) from error


def _find(path: Path, where: str | None) -> Path:
    """Return the absolute path of a config file; a wrong path is rejected with the nearest one."""
    if path.is_dir():
        written = RunDir(path).config_file
        if not written.is_file():
            raise ConfigError([Problem(f"the directory '{show(path)}' has no config.yaml.", where)])
        path = written
    if not path.is_file():
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        hint = nearest(path.name, [entry.name for entry in beside if entry.suffix in SUFFIXES])
        raise ConfigError([Problem(f"there is no config file '{show(path)}'.{hint}", where)])
    if path.suffix not in SUFFIXES:
        kinds = ", ".join(SUFFIXES)
        message = f"'{show(path)}' is not a config file: it must be {kinds}."
        raise ConfigError([Problem(message, where)])
    return Path(os.path.abspath(path))


def _strip_merge_keys(tree: Tree) -> None:
    for value in [tree, *tree.values()]:
        if isinstance(value, dict):
            value.pop(REPLACE, None)
    for value in tree.values():
        if isinstance(value, dict):
            _strip_merge_keys(value)


SUFFIXES = (".yaml", ".yml", ".json", ".py")
