"""The notebook of the examples kills its kernel, and shows after that that nothing was lost."""

import json
import os
import queue
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "two_minutes"
LIMIT = 300.0
WORST = "The worst sample of iteration 371 is ring-137"


def start_kernel(folder):
    from jupyter_client.manager import start_new_kernel

    environment = {**os.environ, "IPYTHONDIR": str(folder), "OMP_NUM_THREADS": "1"}
    return start_new_kernel(startup_timeout=LIMIT, env=environment, cwd=folder)


def run_all(folder):
    """Run the cells in a new kernel; return what they printed, and whether the kernel died."""
    cells = json.loads((EXAMPLE / "two_minutes.ipynb").read_text("utf-8"))["cells"]
    manager, client = start_kernel(folder)
    printed = []
    try:
        for cell in cells:
            if cell["cell_type"] == "code" and not run(
                "".join(cell["source"]), client, manager, printed
            ):
                return "".join(printed), True
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return "".join(printed), False


def run(text, client, manager, printed):
    """Run one cell; return whether the kernel lives."""
    number = client.execute(text)
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        try:
            message = client.get_iopub_msg(timeout=0.5)
        except queue.Empty:
            if not manager.is_alive():
                return False
            continue
        if message["parent_header"].get("msg_id") != number:
            continue
        content = message["content"]
        assert message["msg_type"] != "error", content
        if message["msg_type"] == "stream":
            printed.append(content["text"])
        if content.get("execution_state") == "idle":
            return True
    raise TimeoutError(text)


def test_the_notebook_is_killed_and_loses_nothing(tmp_path):
    _, died = run_all(tmp_path)
    assert died
    printed, died = run_all(tmp_path)
    assert not died
    assert "Not one bit differs." in printed
    assert "- equal" in printed
    assert WORST in printed
    again, died = run_all(tmp_path)  # Running it once more is fine.
    assert not died
    assert WORST in again


def test_the_script_does_the_same(tmp_path):
    line = [sys.executable, str(EXAMPLE / "two_minutes.py")]
    codes = []
    for _ in range(2):
        done = subprocess.run(
            line, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT
        )
        codes.append(done.returncode)
    assert codes == [-signal.SIGKILL, 0], done.stderr
    assert WORST in done.stdout
