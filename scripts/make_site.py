"""Build the site from docs/: ``make docs``, or ``make docs-serve`` to read it while you write.

Runs in the environment of docs/requirements.txt. Warnings are errors, and so are links that lead
nowhere and anything that a page would load from another host.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from site_parts.arranging import STYLE, every_page, generator_settings, navigation, settings
from site_parts.checking import problems
from site_parts.collecting import DOCS, ROOT, collect

BUILD = ROOT / "build" / "site"
SITE = BUILD / "html"
ZENSICAL = [sys.executable, "-m", "zensical"]


def stage(folder: Path) -> int:
    """Write the pages and the settings from which the generator builds; return their number."""
    nav, named = navigation(settings()["nav"])
    missing = set(every_page()) - set(named)
    if missing:
        names = ", ".join(sorted(str(path.relative_to(ROOT)) for path in missing))
        raise SystemExit(f"The navigation in docs/site.yml does not lead to {names}.")
    files = collect([*named, *every_page()]) | {STYLE: (DOCS / STYLE).read_bytes()}
    for place, content in files.items():
        path = folder / "pages" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
    (folder / "mkdocs.yml").write_text(json.dumps(generator_settings(nav, SITE.name), indent=2))
    return len(files)


def build() -> int:
    """Build and check the site; return the exit code."""
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    count = stage(BUILD)
    built = subprocess.run(
        [*ZENSICAL, "build", "--strict", "--clean"],
        cwd=BUILD, capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(built.stdout, end="")
    print(built.stderr, end="", file=sys.stderr)
    if built.returncode or "warning" in (built.stdout + built.stderr).lower():
        return built.returncode or 1
    found = list(problems(SITE))
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        print(f"{count} files became {SITE.relative_to(ROOT)}/index.html and its neighbours.")
    return 1 if found else 0


def serve() -> int:
    """Show the site, and again when a page changes; return the exit code of the server."""
    BUILD.mkdir(parents=True, exist_ok=True)
    stage(BUILD)
    server = subprocess.Popen([*ZENSICAL, "serve"], cwd=BUILD)
    try:
        while server.poll() is None:
            time.sleep(1)
            stage(BUILD)  # Only files that have changed are written.
    except KeyboardInterrupt:
        server.terminate()
    return server.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help="show the site instead")
    sys.exit(serve() if parser.parse_args().serve else build())
