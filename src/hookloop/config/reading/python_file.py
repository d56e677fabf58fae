"""Read a Python file into a tree: its module-level names are the keys.

The file is run as a module with its own name, so that a function defined in it has a path
(``config.my_step``) by which the written config can find it again.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType

from hookloop.config.other_keys import written_as
from hookloop.config.tree import Config, Key, spell
from hookloop.dialects import alias_hint
from hookloop.errors import ConfigError, Problem

BASE = "_base_"
MARK = "_is_hookloop_config"
"""The attribute that marks a module that was run as a config."""


def read_python(path: Path, shown: str, keys: Collection[str]) -> Config:
    """Run a Python config file and collect what it defines.

    Names with an underscore, modules, functions and classes are private to the file, except a
    function or class with the name of a config key (``def step(run, batch)``).

    Args:
        path: The file.
        shown: Its name in messages.
        keys: The keys that a config may have.
    """
    source = path.read_text(encoding="utf-8-sig")
    try:
        module_ast = ast.parse(source, filename=str(path))
    except SyntaxError as error:
        problem = Problem(f"not valid Python: {error.msg}.", f"{shown}:{error.lineno}")
        raise ConfigError([problem]) from error
    module = _run(path)
    config = Config({}, path)
    for name, value in vars(module).items():
        if name == BASE or _is_key(name, value, keys):
            config.tree[name] = _plain(value)
    # The values come from running the file, their lines from its syntax tree.
    for name, line, node in _assignments(module_ast):
        if name in config.tree:
            # Of several assignments the last one counts, and its value may have fewer entries.
            config.forget((name,))
            _mark(config, (name,), node, shown, line)
    _note_objects(config, module)
    return config


def _note_objects(config: Config, module: ModuleType) -> None:
    """Record the path of each object, so that the run's config can name it."""
    for key, value in _objects(config.tree, ()):
        if _has_path(value) and value.__module__ != module.__name__:
            continue  # It is imported from elsewhere.
        if module.__name__ != config.path.stem:
            name = re.sub(r"\W", "_", config.path.stem)
            config.add_problem(
                key,
                f"{spell(key)}: a resume could not find this {type(value).__name__} again, because "
                f"'{config.path.name}' cannot be imported: rename the file, for example to "
                f"{name}_1.py, or describe the object with 'type'.",
            )
        elif not _has_path(value):
            config.origins[id(value)] = f"{module.__name__}:{'.'.join(map(str, key))}"


def _objects(value: object, key: Key) -> Iterator[tuple[Key, object]]:
    """Yield the objects that YAML cannot hold, with their keys; a list of batches is one object."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _objects(item, (*key, name))
    elif isinstance(value, list) and (key[0] in written_as("hooks") or all(map(_is_config, value))):
        for index, item in enumerate(value):
            yield from _objects(item, (*key, index))
    elif not (value is None or isinstance(value, bool | int | float | str)):
        yield key, value


def _has_path(value: object) -> bool:
    """Return whether a class or function can be imported by its module and name."""
    return isinstance(value, FunctionType | type) and "<" not in value.__qualname__


def _run(path: Path) -> ModuleType:
    name = re.sub(r"\W", "_", path.stem)
    loaded = sys.modules.get(name)
    # Another config of this name is replaced: a resume runs in its own process and finds either.
    # Any other module is not: code that imports it must not get our file.
    is_config = getattr(loaded, MARK, False)
    if loaded is not None and not is_config and getattr(loaded, "__file__", None) != str(path):
        name = f"{name}_config"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    # Not an import by name: the file need not be on the import path, and is run again each time.
    module = importlib.util.module_from_spec(spec)
    setattr(module, MARK, True)
    # Before it is run, as an import does it: dataclasses and pickle look a module up here.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    # Also for an interrupt: a module that ran halfway must not be imported later.
    except BaseException as error:
        sys.modules.pop(name)
        if loaded is not None and is_config:
            sys.modules[name] = loaded
        error.add_note(f"while reading the config file {path}")
        if hint := alias_hint(error):
            error.add_note(hint)
        raise
    return module


def _is_key(name: str, value: object, keys: Collection[str]) -> bool:
    if name.startswith("_") or isinstance(value, ModuleType):
        return False
    return name in keys or not isinstance(value, FunctionType | type)


def _plain(value: object) -> object:
    """Copy containers into dicts and lists, as a YAML file would give them."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value]
        # A list of batches is data, not config: it stays the object that it is.
        return items if all(_is_config(item) for item in items) else value
    if isinstance(value, Path):
        return str(value)
    # A NumPy number, recognized without importing NumPy; torch's tensors stay objects.
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()  # type: ignore[attr-defined]
    return value


def _is_config(value: object) -> bool:
    plain = (bool, int, float, str, dict, list, FunctionType, type)
    return value is None or isinstance(value, plain)


def _assignments(module: ast.Module) -> list[tuple[str, int, ast.expr | None]]:
    """Find what is assigned at module level, also inside `if`, `for` and `with`."""
    found: list[tuple[str, int, ast.expr | None]] = []
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append((node.name, node.lineno, None))
            continue
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            found += [(name, node.lineno, node.value) for name in names]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.append((node.target.id, node.lineno, node.value))
        waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found


def _mark(config: Config, key: Key, node: ast.expr | None, shown: str, line: int) -> None:
    """Record the line of a node, and of the literals inside it."""
    config.marks[key] = f"{shown}:{line}"
    if isinstance(node, ast.List | ast.Tuple):
        for index, item in enumerate(node.elts):
            _mark(config, (*key, index), item, shown, item.lineno)
    elif isinstance(node, ast.Dict):
        for name, value in zip(node.keys, node.values, strict=True):
            if isinstance(name, ast.Constant) and isinstance(name.value, str | int):
                _mark(config, (*key, name.value), value, shown, name.lineno)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        for keyword in node.keywords:
            if keyword.arg is not None:
                _mark(config, (*key, keyword.arg), keyword.value, shown, keyword.lineno)
