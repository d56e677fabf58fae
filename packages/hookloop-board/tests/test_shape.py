"""The shape of the package: public names only, one version with the engine, and no torch."""

import ast
import importlib
import subprocess
import sys
from importlib.metadata import requires, version
from pathlib import Path

import hookloop

SOURCE = Path(__file__).parents[1] / "src" / "hookloop_board"
PUBLIC = {"hookloop", "hookloop.commands", "hookloop.runs"}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module, [one.name for one in node.names]
        elif isinstance(node, ast.Import):
            yield from ((one.name, []) for one in node.names)


def test_it_imports_public_names_only():
    found = [
        (path.name, module, name)
        for path in SOURCE.rglob("*.py")
        for module, names in imports(path)
        if module.partition(".")[0] == "hookloop"
        for name in (names or [""])
        if module not in PUBLIC or name not in importlib.import_module(module).__all__
    ]
    assert not found


def test_it_has_the_version_of_the_engine():
    assert version("hookloop-board") == hookloop.__version__
    series = ".".join(hookloop.__version__.split(".")[:2])
    assert f"hookloop=={series}.*" in requires("hookloop-board")


def test_neither_the_command_nor_the_server_imports_torch():
    code = (
        "import sys, hookloop_board.command, hookloop_board.serve, hookloop_board.export;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
