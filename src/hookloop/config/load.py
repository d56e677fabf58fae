"""From a config file to a `Config`: its bases merged, overrides applied, references resolved."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hookloop.config.reading.interpolate import interpolate
from hookloop.config.reading.overrides import override
from hookloop.config.reading.python_file import read_python
from hookloop.config.reading.yaml_file import read_yaml
from hookloop.config.schema import KEYS
from hookloop.config.tree import REPLACE, Config, Tree
from hookloop.errors import ConfigError, Fault, nearest
from hookloop.runs.layout import RunDir

_log = logging.getLogger("hookloop")

BASE = "_base_"
IMPORT_PATH = "import_path"


def load(path: str | Path, overrides: Sequence[str] = (), *, only_data: bool = False) -> Config:
    """Read a config file, and say nothing yet about what its names mean.

    A file that cannot be read at all is refused at once. Faults that leave the rest readable are
    kept in the result, and raised by `build` together with all others.

    Args:
        path: A YAML or Python file, or a run directory, whose written config is taken.
        overrides: ``a.b=value`` each; the last of one key wins.
        only_data: Whether to reject Python files, also as a base, since reading them runs them.
    """
    config = _read(_find(Path(path), None), (), only_data=only_data)
    config.marks[()] = show(config.path)
    for text in overrides:
        override(config, text)
    interpolate(config)
    for warning in config.warnings:
        _log.warning("%s", warning)
    return config


def show(path: Path) -> str:
    """Write a path as a user would: relative to the working directory when it lies below it."""
    full = Path(os.path.abspath(path))
    here = Path.cwd()
    return str(full.relative_to(here)) if full.is_relative_to(here) else str(full)


def extend_import_path(directories: Sequence[Path]) -> None:
    """Let modules in these directories be imported, the first directory first.

    They stay for the life of the process, as a script's own directory does: training may import
    a module as late as it likes.
    """
    for directory in reversed(directories):
        if str(directory) not in sys.path:
            sys.path.insert(0, str(directory))


def _read(path: Path, open_files: tuple[Path, ...], *, only_data: bool = False) -> Config:
    if only_data and path.suffix == ".py":
        raise ConfigError([Fault("a Python file is not read here: that would run it.", show(path))])
    config = _read_file(path)
    bases = config.tree.pop(BASE, [])
    result = Config({}, path)
    searched = _searched(config, path.parent)
    for base in bases if isinstance(bases, list) else [bases]:
        where = config.where((BASE,))
        if not isinstance(base, str):
            raise ConfigError([Fault(f"'{BASE}' names a file or a list of files.", where)])
        found = _find(path.parent / base, where)
        chain = (*open_files, path)
        if found in chain:
            circle = " -> ".join(show(file) for file in (*chain[chain.index(found) :], found))
            raise ConfigError([Fault(f"'{BASE}' goes round in a circle: {circle}.", where)])
        inherited = _read(found, chain, only_data=only_data)
        searched += _searched(inherited, found.parent)
        result.absorb(inherited)
    result.absorb(config)
    if bases and set(searched) != {str(path.parent)}:
        result.tree[IMPORT_PATH] = list(dict.fromkeys(searched))
    _strip_marks_of_merging(result.tree)
    return result


def _searched(config: Config, home: Path) -> list[str]:
    """List where a file's modules are: relative to itself, so that a child finds them, too."""
    said = config.tree.get(IMPORT_PATH, str(home))
    entries = [str(entry) for entry in (said if isinstance(said, list) else [said])]
    # A reference is resolved later; where it leads is usually absolute.
    return [entry if "${" in entry else os.path.abspath(home / entry) for entry in entries]


def _read_file(path: Path) -> Config:
    shown = show(path)
    try:
        if path.suffix == ".py":
            extend_import_path([path.parent, Path.cwd()])
            return read_python(path, shown, KEYS)
        return read_yaml(path, shown)
    except UnicodeDecodeError as error:
        raise ConfigError([Fault(f"not a text file in UTF-8: {error.reason}.", shown)]) from error
    except PermissionError as error:
        raise ConfigError([Fault("permission to read this file is denied.", shown)]) from error


def _find(path: Path, where: str | None) -> Path:
    """Return the absolute path of a config file, or refuse with what there is instead."""
    if path.is_dir():
        written = RunDir(path).config_file
        if not written.is_file():
            raise ConfigError([Fault(f"the directory '{show(path)}' has no config.yaml.", where)])
        path = written
    if not path.is_file():
        options = (
            []
            if not path.parent.is_dir()
            else [entry.name for entry in path.parent.iterdir() if entry.suffix in SUFFIXES]
        )
        hint = nearest(path.name, options)
        raise ConfigError([Fault(f"there is no config file '{show(path)}'.{hint}", where)])
    if path.suffix not in SUFFIXES:
        kinds = ", ".join(SUFFIXES)
        raise ConfigError([Fault(f"'{show(path)}' is no config file: it must be {kinds}.", where)])
    return Path(os.path.abspath(path))


def _strip_marks_of_merging(tree: Tree) -> None:
    for value in [tree, *tree.values()]:
        if isinstance(value, dict):
            value.pop(REPLACE, None)
    for value in tree.values():
        if isinstance(value, dict):
            _strip_marks_of_merging(value)


SUFFIXES = (".yaml", ".yml", ".json", ".py")
