"""Build all distributions from a fresh clone, install them in clean environments, run their tests.

``python scripts/try_distributions.py`` takes the committed state. It builds an archive of the
sources of the engine and of each package beside it, and from each archive a wheel. Then it makes an
environment with the engine alone, one with each package beside it, and one with all, and runs in
each the tests of what is installed there. Nothing is taken from the working tree.

``--shared`` takes what is not ours (torch, pytest, ...) from the environment of this Python, which
is quick; otherwise pip installs it from its index. ``--quick`` runs a part of the tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
from release_check import PAGE

ROOT = Path(__file__).parents[1]
BESIDE = ("board", "callbacks", "dialects", "mmengine")

ENGINE_TESTS = ("tests/contract", "tests/unit")
QUICK_ENGINE_TESTS = ("tests/unit/dialects", "tests/unit/config", "tests/unit/update")
ALL_TESTS = ("packages/tests",)
QUICK, WHOLE = "not slow and not long", "not long"
"""Which tests: those of the documents start commands, and are among the slow ones."""


def main() -> int:
    """Build, install and test; return how many environments failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Text)
    parser.add_argument("--shared", action="store_true", help="use the packages of this Python")
    parser.add_argument("--quick", action="store_true", help="a part of the tests")
    parser.add_argument("--only", nargs="*", choices=("engine", *BESIDE, "all"), default=[])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="distributions-") as folder:
        work = Path(folder)
        clone = _clone(work / "clone")
        wheels = _build(clone, work / "built")
        failed = [
            name
            for name, packages in _environments().items()
            if (not arguments.only or name in arguments.only)
            and not _is_good(name, packages, work, clone, wheels, arguments)
        ]
    print(f"failed: {', '.join(failed)}" if failed else "all are good")
    return len(failed)


class _Text(argparse.RawDescriptionHelpFormatter):
    """Shows the docstring as it is written."""


def _environments() -> dict[str, tuple[str, ...]]:
    alone: dict[str, tuple[str, ...]] = {"engine": ()}
    return {**alone, **{name: (name,) for name in BESIDE}, "all": BESIDE}


def _clone(clone: Path) -> Path:
    _run("git", "clone", "--quiet", "--no-hardlinks", ROOT, clone)
    commit = _run("git", "rev-parse", "HEAD", cwd=ROOT).strip()  # Of this worktree.
    _run("git", "checkout", "--quiet", commit, cwd=clone)
    print(f"commit {commit[:12]}")
    if (ROOT / PAGE / "index.html").is_file():  # Otherwise the build makes it, with Node.
        shutil.copytree(ROOT / PAGE, clone / PAGE)
    return clone


def _build(clone: Path, built: Path) -> dict[str, Path]:
    """Build archives of the sources, and a wheel from each; return the wheels by package."""
    wheels = {}
    for name in ("engine", *BESIDE):
        home = clone if name == "engine" else clone / "packages" / f"hookloop-{name}"
        # An archive of the sources first: what it lacks is missed when the wheel is made of it.
        _run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", built, cwd=home)
        distribution = "hookloop" if name == "engine" else f"hookloop_{name}"
        (archive,) = built.glob(f"{distribution}-[0-9]*.tar.gz")
        unpacked = built / "unpacked"
        _run("tar", "-xzf", archive, "-C", _made(unpacked))
        home = unpacked / archive.name.removesuffix(".tar.gz")
        _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", built, cwd=home)
        (wheel,) = built.glob(f"{distribution}-[0-9]*.whl")
        sizes = " and ".join(f"{one.stat().st_size / 1e6:.2f} MB" for one in (archive, wheel))
        print(f"{distribution}: sources and wheel of {sizes}")
        wheels[name] = wheel
    return wheels


def _is_good(
    name: str,
    packages: tuple[str, ...],
    work: Path,
    clone: Path,
    wheels: dict[str, Path],
    arguments: argparse.Namespace,
) -> bool:
    python = _environment(
        work / f"with-{name}", [wheels["engine"], *map(wheels.get, packages)], arguments
    )
    found = _run(python, "-c", _LIST, cwd=work).split()
    wanted = sorted(["hookloop", *(f"hookloop-{one}" for one in packages)])
    if found != wanted:
        print(f"{name}: {found} are installed, not {wanted}")
        return False
    tests = [f"packages/hookloop-{one}/tests" for one in packages]
    if name == "engine":
        tests = [*(QUICK_ENGINE_TESTS if arguments.quick else ENGINE_TESTS)]
    elif name == "all":
        tests = [*ALL_TESTS, *([] if arguments.quick else tests)]
    which = QUICK if arguments.quick else WHOLE
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", which, *tests],
        cwd=clone, env=_variables(), check=False, capture_output=True, text=True,
    )  # fmt: skip
    last = (done.stdout.strip().splitlines() or ["nothing was printed"])[-1]
    print(f"{name}: {last}")
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:], sep="\n")
    return done.returncode == 0


# Of this environment: the one that `--shared` adds to it has ours as editable, which are not found.
_LIST = (
    "import sysconfig; from importlib.metadata import distributions;"
    "found = distributions(path=[sysconfig.get_path('purelib')]);"
    "print(*sorted(one.name for one in found if one.name.startswith('hookloop')))"
)


def _environment(home: Path, wheels: list[Path | None], arguments: argparse.Namespace) -> Path:
    _run(sys.executable, "-m", "venv", *(["--without-pip"] if arguments.shared else []), home)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    if arguments.shared:
        _run(*pip, "--no-deps", "--no-index", *map(str, wheels))
        (place,) = home.glob("lib/python*/site-packages")
        others = Path(pytest.__file__).parents[1]
        # A plain path: what is installed there as editable, such as hookloop itself, is not found.
        (place / "zzz_others.pth").write_text(f"{others}\n")
        return python
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    _run(*pip, *constraints, *map(str, wheels))
    _run(*pip, *constraints, *_for_tests())
    return python


def _for_tests() -> list[str]:
    """Return what the tests need besides the wheels: the engine's extra, without ourselves."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    own, *tools = extras["dev"]
    names = own.partition("[")[2].rstrip("]").split(",")
    return [*tools, *(one for name in names for one in extras[name])]


def _variables() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "OMP_NUM_THREADS": "1"}


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(*command: object, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=_variables(), check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
