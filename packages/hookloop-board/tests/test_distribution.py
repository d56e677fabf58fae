"""The wheel brings the built page, and an archive of the sources builds one without Node."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from hookloop import HookloopError, __version__
from hookloop_board.page import built_page

pytestmark = pytest.mark.slow  # Builds.

ROOT = Path(__file__).parents[1]
NAME = f"hookloop_board-{__version__}"


def build(where, to, *kinds):
    """Build as pip does, where neither Node nor npm is found."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(to), *kinds],
        cwd=where, env={**os.environ, "PATH": os.devnull}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_is_in_the_archive_and_in_the_wheel_that_is_built_from_it(tmp_path):
    try:
        page = built_page()
    except HookloopError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    build(ROOT, tmp_path, "-t", "sdist")
    with tarfile.open(tmp_path / f"{NAME}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    build(tmp_path / NAME, tmp_path, "-t", "wheel")
    with zipfile.ZipFile(tmp_path / f"{NAME}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
    of_page = {f"hookloop_board/page/{one.relative_to(page)}" for one in page.rglob("*.*")}
    assert of_page <= names and any(one.endswith(".js") for one in of_page)
    assert all(name.startswith(("hookloop_board/", f"{NAME}.dist-info/")) for name in names)
