"""Show which names of an aliased package the files of a project import and do not find.

``python scripts/imported_names.py mmengine path/to/mmpretrain path/to/mmdet`` reads the files, runs
nothing of them, and looks up each name under the alias. The package itself must not be installed.
The share of hook files, those in a directory ``hooks``, is shown on its own.
"""

from __future__ import annotations

import argparse
import ast
import importlib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hookloop import dialects


def main() -> None:
    """Read the command line, look up all names and print what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", help="the dialect, for example mmengine")
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--files", action="store_true", help="list the files that lack a name")
    arguments = parser.parse_args()
    with dialects.alias(arguments.package) as alias:
        if arguments.package not in alias.packages:
            parser.error(f"'{arguments.package}' is installed, so there is nothing to look up")
        lacking = {
            path: {name for name in names if not _is_found(name)}
            for directory in arguments.directories
            for path in sorted(directory.rglob("*.py"))
            if (names := set(imported_names(path, arguments.package)))
        }
    _report(lacking, show_files=arguments.files)


def imported_names(path: Path, package: str) -> Iterator[str]:
    """Yield the names of a package that a file imports, or reads as ``package.x.y``."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    begins = f"{package}."
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            if node.module == package or (node.module or "").startswith(begins):
                yield from (f"{node.module}:{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            named = (name.name for name in node.names)
            yield from (f"{name}:" for name in named if f"{name}.".startswith(begins))
        elif isinstance(node, ast.Attribute) and (dotted := _dotted(node)).startswith(begins):
            yield ":".join(dotted.split(".")[:2])


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


@cache
def _is_found(name: str) -> bool:
    module, _, attribute = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError:
        return False
    if not attribute or attribute == "*":
        return True
    try:
        getattr(found, attribute)
    except (AttributeError, ImportError):
        return _is_found(f"{module}.{attribute}:")
    return True


def _report(lacking: dict[Path, set[str]], *, show_files: bool) -> None:
    counts = Counter(name for names in lacking.values() for name in names)
    for name, count in counts.most_common():
        print(f"{count:5} {name}")
    hooks = {path: names for path, names in lacking.items() if "hooks" in path.parts}
    for title, files in (("files", lacking), ("hook files", hooks)):
        bad = [path for path, names in files.items() if names]
        share = 100 * (1 - len(bad) / max(len(files), 1))
        print(f"{title}: {len(files) - len(bad)} of {len(files)} find every name ({share:.1f} %)")
        if show_files:
            print(*(f"  {path}: {', '.join(sorted(files[path]))}" for path in bad), sep="\n")


if __name__ == "__main__":
    main()
