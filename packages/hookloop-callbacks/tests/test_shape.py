"""The shape of the package: it needs neither of the packages whose callbacks it runs."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "hookloop_callbacks"


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def test_it_imports_neither_lightning_nor_transformers():
    packages = {name.partition(".")[0] for path in SOURCE.rglob("*.py") for name in imports(path)}
    assert not packages & {"lightning", "pytorch_lightning", "transformers"}
