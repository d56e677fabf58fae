"""Find the built page; in a source checkout, build it where it is missing."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

from hookloop import HookloopError

PAGE = Path(__file__).parent / "page"
SOURCES = Path(__file__).parents[2] / "page"

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
"""What the page consists of. Not as the system says, where a script may be plain text."""

INSTALL = (
    "Install Node 20 or newer, with npm (Debian: apt-get install nodejs npm; others: "
    "https://nodejs.org), and run 'make board'"
)


def built_page(page: Path = PAGE, sources: Path = SOURCES) -> Path:
    """Return the directory of the built page; build it from a checkout if it is missing.

    Raises:
        HookloopError: If it is missing and cannot be built.
    """
    if (page / "index.html").is_file():
        return page
    if not (sources / "package.json").is_file():
        raise HookloopError(
            "The page of the board is missing in this installation: install hookloop-board "
            "again from a wheel."
        )
    build_page(sources)
    if not (page / "index.html").is_file():
        raise HookloopError(f"The build in '{sources}' has not made '{page / 'index.html'}'.")
    return page


def page_files(page: Path) -> dict[str, tuple[bytes, bytes, dict[str, str]]]:
    """Return the files of the page by their address: each in full, compressed, and its headers.

    They are read once, so that an address is never made into a path, and so that a page opens while
    the runs are read: nothing of it waits for a thread or for the disk.
    """
    found = {}
    for path in page.rglob("*"):
        if not path.is_file():
            continue
        name, data = path.relative_to(page).as_posix(), path.read_bytes()
        headers = {"content-type": KINDS.get(path.suffix, "application/octet-stream")}
        if name.startswith("assets/"):  # Its name has a hash of what is in it.
            headers["cache-control"] = "private, max-age=31536000, immutable"
        found[name] = (data, gzip.compress(data, 6), headers)
    return found


def build_page(sources: Path) -> None:
    """Build the page with npm.

    Raises:
        HookloopError: If Node is missing, or the build fails.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise HookloopError(f"The page of the board has to be built once, with Node. {INSTALL}.")
    for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        done = subprocess.run(
            [npm, *arguments],
            cwd=sources,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode:
            text = done.stdout.decode("utf-8", "replace")[-2000:]
            raise HookloopError(f"'npm {' '.join(arguments)}' failed in '{sources}':\n{text}")
