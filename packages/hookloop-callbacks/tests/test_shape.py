"""The shape of the package: it uses public names only, and its modules stay short."""

import ast
import importlib
from pathlib import Path

import hookloop.dialects

SOURCE = Path(__file__).parents[1] / "src" / "hookloop_callbacks"
MODULES = sorted(SOURCE.rglob("*.py"))
PUBLIC = {
    *("hookloop", "hookloop.hooks", "hookloop.writers", "hookloop.testing"),
    *("hookloop.errors", "hookloop.dialects"),
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module, [one.name for one in node.names]
        elif isinstance(node, ast.Import):
            yield from ((one.name, []) for one in node.names)


def test_it_imports_public_names_only():
    found = [
        (path.name, module, name)
        for path in MODULES
        for module, names in imports(path)
        if module.partition(".")[0] == "hookloop"
        for name in (names or [""])
        if module not in PUBLIC or name not in importlib.import_module(module).__all__
    ]
    assert not found


def test_it_imports_neither_lightning_nor_transformers():
    packages = {module.partition(".")[0] for path in MODULES for module, _ in imports(path)}
    assert not packages & {"lightning", "pytorch_lightning", "transformers"}


def test_what_a_dialect_is_made_of_is_public():
    for name in hookloop.dialects.__all__:
        assert getattr(hookloop.dialects, name) is not None
    assert sorted(hookloop.dialects.__all__) == sorted(dir(hookloop.dialects))
