"""Check that a release can be made, and make its files: ``make release-check``.

The version has its section in the changelog and its tag; wheels and sdists of all five
distributions are built twice, from two copies of the commit, and must be equal to the byte. What
the engine needs is listed as a bill of materials (CycloneDX).

python scripts/release_check.py [--tag v0.3.0] [--out dist]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PACKAGES = (
    ".",
    *(f"packages/hookloop-{one}" for one in ("board", "callbacks", "dialects", "mmengine")),
)
PAGE = Path("packages/hookloop-board/src/hookloop_board/page")


class NotReadyError(Exception):
    """Something keeps this commit from being released."""


def main() -> None:
    """Read the command line and check."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tag", help="the tag that the release is made from")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where its files go")
    options = parser.parse_args()
    try:
        version = check_version(options.tag)
        files = build_twice(options.out)
        files.append(write_bill(options.out, version))
    except NotReadyError as error:
        raise SystemExit(f"NOT READY: {error}") from error
    for path in files:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")


def check_version(tag: str | None) -> str:
    """Return the version, after comparing all places that name it."""
    version = _version()
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if f"\n## {version}\n" not in changelog:
        raise NotReadyError(f"CHANGELOG.md has no section '## {version}'.")
    if tag is None:
        return version
    if tag != f"v{version}":
        raise NotReadyError(f"The tag is {tag}, and the version {version}.")
    if tag not in _git("tag", "--points-at", "HEAD").splitlines():
        raise NotReadyError(f"{tag} is not the tag of this commit.")
    unreleased = changelog.partition("## Unreleased")[2].partition("\n## ")[0]
    if unreleased.strip():
        raise NotReadyError(
            "CHANGELOG.md has changes under Unreleased: put them under the version."
        )
    return version


def build_twice(out: Path) -> list[Path]:
    """Build all distributions in two copies of the commit, and compare them."""
    if not (ROOT / PAGE / "index.html").is_file():
        raise NotReadyError("The page of the board is not built: make board.")
    out.mkdir(parents=True, exist_ok=True)
    built: list[dict[str, Path]] = []
    with tempfile.TemporaryDirectory(prefix="hookloop-release-") as folder:
        for number in ("one", "two"):  # Of different lengths of path, in case it gets into a file.
            built.append(_build(Path(folder) / number / ("x" * len(built))))
        first, second = built
        for name in sorted(first | second):
            if first[name].read_bytes() != second[name].read_bytes():
                raise NotReadyError(f"{name} differs between two builds of the same commit.")
        return [_moved(path, out) for _, path in sorted(first.items())]


def _build(copy: Path) -> dict[str, Path]:
    copy.mkdir(parents=True)
    archive = copy / "commit.tar"
    _git("archive", "--output", str(archive), "HEAD")
    with tarfile.open(archive) as tar:
        tar.extractall(copy, filter="data")
    archive.unlink()
    # Git does not have the page, which is built from its sources with Node.
    for path in sorted((ROOT / PAGE).rglob("*")):
        if path.is_file():
            target = copy / PAGE / path.relative_to(ROOT / PAGE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    environment = os.environ | {"SOURCE_DATE_EPOCH": _git("log", "-1", "--format=%ct")}
    place = copy / "dist"
    for package in PACKAGES:
        line = [sys.executable, "-m", "hatchling", "build", "-d", str(place)]
        done = subprocess.run(
            line, cwd=copy / package, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NotReadyError(f"{package} cannot be built: {done.stderr}")
    return {path.name: path for path in place.iterdir()}


def write_bill(out: Path, version: str) -> Path:
    """Write which packages the engine needs, with the versions that its tests run with."""
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "name": "hookloop",
                "version": version,
                "purl": f"pkg:pypi/hookloop@{version}",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [
            {
                "type": "library",
                "name": name,
                "version": number,
                "purl": f"pkg:pypi/{name}@{number}",
                "bom-ref": f"pkg:pypi/{name}@{number}",
            }
            for name, number in sorted(required("hookloop"))
        ],
    }
    path = out / f"hookloop-{version}.cdx.json"
    path.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    return path


def required(name: str) -> set[tuple[str, str]]:
    """Return all packages that one needs without its extras, and what those need in turn."""
    found: set[tuple[str, str]] = set()
    waiting = [name]
    seen = {name}
    while waiting:
        for other in _needs(waiting.pop()):
            key = re.sub(r"[-_.]+", "-", other).lower()
            if key in seen:
                continue
            seen.add(key)
            try:
                # Without the part that names a build for some hardware: that is not on the index.
                found.add((key, distribution(other).version.partition("+")[0]))
            except PackageNotFoundError:
                continue  # For another platform.
            waiting.append(other)
    return found


def _needs(name: str) -> Iterator[str]:
    for line in distribution(name).requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name


def _version() -> str:
    text = (ROOT / "src" / "hookloop" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'VERSION = "(.+?)"', text)
    if found is None:
        raise NotReadyError("src/hookloop/version.py has no VERSION.")
    minor = found[1].rpartition(".")[0]
    for package in PACKAGES[1:]:
        project = tomllib.loads((ROOT / package / "pyproject.toml").read_text(encoding="utf-8"))
        about = project["project"]
        if about["version"] != found[1] or f"hookloop=={minor}.*" not in about["dependencies"]:
            raise NotReadyError(
                f"{package} is {about['version']} and needs {about['dependencies']}: it has the "
                f"version of the engine, {found[1]}, and needs hookloop=={minor}.*."
            )
    return found[1]


def _moved(path: Path, out: Path) -> Path:
    target = out / path.name
    target.write_bytes(path.read_bytes())
    return target


def _git(*arguments: str) -> str:
    line = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
