"""Report the size of each room of the code, its longest files, and who imports most.

python scripts/shape.py

A report and no test: rooms are cut by purpose, and no number here fails anything.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
MOST = 10


def main() -> None:
    """Print the three tables."""
    modules = [*SOURCE.rglob("*.py"), *(ROOT / "packages").glob("*/src/**/*.py")]
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules}
    rooms: dict[str, list[int]] = defaultdict(list)
    for path, lines in sizes.items():
        rooms[_room(path)].append(lines)
    print(f"{'room':<32}{'files':>6}{'lines':>8}")
    for room, lines_of in sorted(rooms.items(), key=lambda row: -sum(row[1])):
        print(f"{room:<32}{len(lines_of):>6}{sum(lines_of):>8}")
    print(f"{'in all':<32}{len(sizes):>6}{sum(sizes.values()):>8}\n\nlongest files")
    for path, lines in sorted(sizes.items(), key=lambda row: -row[1])[:MOST]:
        print(f"{lines:>8}  {path.relative_to(ROOT)}")
    print("\nfiles that import most of our modules")
    imports = {path: len(set(_own_imports(path))) for path in modules}
    for path, count in sorted(imports.items(), key=lambda row: -row[1])[:MOST]:
        print(f"{count:>8}  {path.relative_to(ROOT)}")


def _room(path: Path) -> str:
    """Return the folder that a module belongs to: one below the package, or the package itself."""
    parts = path.relative_to(ROOT).parts
    inside = parts[parts.index("src") + 1 : -1]
    return "/".join(inside[:2])


def _own_imports(path: Path) -> Iterator[str]:
    """Yield the modules of ours that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hookloop"):
            yield node.module or ""


if __name__ == "__main__":
    main()
