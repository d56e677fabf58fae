"""The parameters of the built-in hooks, read from their source text: importing them takes torch."""

from __future__ import annotations

import ast
from pathlib import Path

from hookloop import hooks

HOME = Path(hooks.__file__).parent
PACKAGE = "hookloop.hooks."


def hook_parameters(name: str) -> list[str]:
    """Return the names of a built-in hook's parameters; none for another name.

    >>> hook_parameters("StopAfter")
    ['epochs', 'iterations', 'minutes', 'samples', 'tokens']
    """
    if name not in hooks.__all__:
        return []
    return _parameters(hooks.module_of(name).removeprefix(PACKAGE), name)


def _parameters(module: str, name: str) -> list[str]:
    """Return the parameters of a class, or of the first class above it that has a constructor."""
    try:
        path = HOME.joinpath(*module.split(".")).with_suffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except OSError:  # Its base is not a hook of this package.
        return []
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if name not in classes:
        return []
    for node in classes[name].body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            arguments = node.args
            return [one.arg for one in (*arguments.args[1:], *arguments.kwonlyargs)]
    modules = _imported(tree)
    for base in classes[name].bases:
        if isinstance(base, ast.Name):
            home = module if base.id in classes else modules.get(base.id)
            if home is not None and (found := _parameters(home, base.id)):
                return found
    return []


def _imported(tree: ast.Module) -> dict[str, str]:
    """Return the modules of this package from which a file imports, by the imported name."""
    return {
        entry.name: node.module.removeprefix(PACKAGE)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE)
        for entry in node.names
    }
