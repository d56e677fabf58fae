"""``vissl.utils.logger``: what a GPU reports of itself."""

from __future__ import annotations

import logging
import subprocess

_log = logging.getLogger("vissl")


def log_gpu_stats() -> None:
    """Log the output of ``nvidia-smi``; without the program, an error."""
    try:
        # The program comes with the driver, so it is there where CUDA works.
        done = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        _log.error("nvidia-smi cannot be run: %s", error)
    else:
        _log.info(done.stdout)
