"""Build the page of the board for a wheel or an archive of the sources, where it is missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MISSING = (
    "The page of the board (src/hookloop_board/page) is not built, and building it needs Node 20 "
    "or newer, with npm, which is not there. Install it (Debian: apt-get install nodejs npm; "
    "others: https://nodejs.org), or build from an archive of the sources, which has the page."
)


class BuildPage(BuildHookInterface[Any]):
    """Builds the page with npm; an editable install needs none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page, unless it is there."""
        root = Path(self.root)
        if version == "editable" or (root / "src/hookloop_board/page/index.html").is_file():
            return
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            raise RuntimeError(MISSING)
        for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
            subprocess.run([npm, *arguments], cwd=root / "page", check=True)
