"""A test that is left out fails CI, unless it is on the list in the root's conftest.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = """
import pytest

def test_one():
    pytest.skip("no reason")
"""


@pytest.mark.slow
def test_a_skip_that_is_not_on_the_list_fails_ci(tmp_path):
    (tmp_path / "test_some.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-c", os.devnull]
    for ci, code in (("true", 1), ("", 0)):
        done = subprocess.run(
            [*command, "test_some.py"],
            cwd=tmp_path,
            env=os.environ | {"CI": ci, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout
        line = "NOT ON THE LIST in conftest.py: test_some.py::test_one: Skipped: no reason"
        assert line in done.stdout


def test_what_is_on_the_list_exists():
    from conftest import MAY_SKIP

    for one in MAY_SKIP:
        assert list(ROOT.glob(one.tests.partition("::")[0])), one
