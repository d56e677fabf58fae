"""A user's code with types everywhere passes `mypy --strict`, and it runs."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

USER_CODE = Path(__file__).parents[1] / "typed_project" / "user_code.py"


@pytest.mark.slow
def test_typed_code_of_a_user_passes_strict_type_checks(tmp_path):
    # In a directory of its own and without a config: as a user's project, not as ours.
    (tmp_path / "user_code.py").write_text(USER_CODE.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "user_code.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_typed_code_runs(capsys):
    names = runpy.run_path(str(USER_CODE))
    names["main"]()
    names["own_loop"]()
    for trainer in (
        names["several"](names["nn"].Linear(4, 4), names["nn"].Linear(4, 2)),
        names["mappings"](names["nn"].Linear(4, 2)),
    ):
        assert trainer.train().status == "completed"
