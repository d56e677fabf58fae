"""The contract of hooks on the counting device, in a process of its own.

torch takes a device only before the first backward of a process, and keeps it: in the process of
the other tests, which train on several ranks, it must not be.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_on_the_counting_device(tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"),
            *(f"--basetemp={tmp_path}", "tests/contract/on_counting_device.py"),
        ],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
