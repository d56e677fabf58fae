"""Let this environment import what another one has installed, besides its own packages.

python scripts/lie_over.py .venv/bin/python
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

ASK = "import sysconfig; print(sysconfig.get_path('purelib'))"


def main(python: str) -> None:
    """Add the packages of another environment to those of this one."""
    asked = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True)
    # A line of code, because only a directory that is added like this has its own .pth files read,
    # which editable installs need.
    line = f"import site; site.addsitedir({asked.stdout.strip()!r})\n"
    Path(sysconfig.get_path("purelib"), "lie_over.pth").write_text(line)


if __name__ == "__main__":
    main(sys.argv[1])
