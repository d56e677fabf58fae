"""The trials of ``make faults`` with fewer kills: real processes, really killed."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "faults.py"


def test_a_training_survives_every_trial():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--small"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 kills" in done.stdout
    assert done.stdout.count("bit-equal") >= 6  # More where a disk can be mounted.
    for trial in (
        "signals: ",
        "every way to end: 8 ways",
        "killed between save and validation: ",
        "directory removed: reported",
        "directory read-only at the end: train() returned",
        "store that hangs: ",
    ):
        assert f"\n{trial}" in done.stdout


def test_a_training_on_ranks_survives_kills():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--ranks", "3", "--kills", "4"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for strategy in ("replicated", "sharded"):
        assert f"\n{strategy}: 2 kills" in done.stdout
    assert done.stdout.count("all ended bit-equal") == 2
