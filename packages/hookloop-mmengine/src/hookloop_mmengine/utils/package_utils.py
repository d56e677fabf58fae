"""``mmengine.utils.package_utils``: packages that are installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path


def is_installed(package: str) -> bool:
    """Return whether a package is installed, by its name on the index or in imports."""
    if _distribution(package) is not None:
        return True
    spec = find_spec(package)
    return spec is not None and spec.origin is not None


def get_installed_path(package: str) -> str:
    """Return the directory of a package."""
    found = _distribution(package)
    if found is None:
        spec = find_spec(package)
        if spec is None:
            raise PackageNotFoundError(package)
        if spec.origin is None:
            raise RuntimeError(
                f"{package} is a namespace package, which is invalid for `get_install_path`"
            )
        return str(Path(spec.origin).parent)
    home = Path(str(found.locate_file("")))
    direct = home / package
    return str(direct if direct.exists() else home / package2module(package))


def package2module(package: str) -> str:
    """Return the module of a package whose name on the index is another one."""
    listed = distribution(package).read_text("top_level.txt")
    if not listed:
        raise ValueError(f"can not infer the module name of {package}")
    return listed.split("\n", 1)[0]


def call_command(cmd: list[str]) -> None:
    """Run a command; a failure is an error."""
    subprocess.check_call(cmd)


def install_package(package: str) -> None:
    """Install a package with pip, unless it is installed."""
    if not is_installed(package):
        call_command([sys.executable, "-m", "pip", "install", package])


def _distribution(package: str) -> Distribution | None:
    try:
        return distribution(package)
    except PackageNotFoundError:
        return None
