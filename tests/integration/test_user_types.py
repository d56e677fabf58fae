"""A user's code with types everywhere passes `mypy --strict`, and it runs."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

USER_CODE = Path(__file__).parents[1] / "typed_project" / "user_code.py"


MISSPELLED = """
from hookloop import Run
from hookloop.engine.plan import Calls, Plan
from hookloop.engine.points import MountPoints, Point


def calls_of(plan: Plan) -> Calls:
    return plan.before_run


def point() -> Point:
    return MountPoints.after_val_epoch


def names(run: Run) -> tuple[str, ...]:
    return tuple(hook.name for hook in run._plan.after_train_iter.hooks)


def misspelled(plan: Plan) -> object:
    return plan.before_rnu


def not_in_the_table() -> object:
    return MountPoints.after_trian


def mixed_up(plan: Plan) -> Point:
    return plan.before_run
"""


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """What `mypy --strict` reports about a user's code, and about code with misspelled points."""
    # In a directory of its own and without a config: as a user's project, not as ours. Both files
    # in one go, since most of the time goes into reading torch.
    project = tmp_path_factory.mktemp("project")
    files = {"user_code.py": USER_CODE.read_text(encoding="utf-8"), "misspelled.py": MISSPELLED}
    for name, text in files.items():
        (project / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", *files]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout.splitlines()[:-1]  # The last line counts them.


@pytest.mark.slow
def test_typed_code_of_a_user_passes_strict_type_checks(complaints):
    assert not [line for line in complaints if not line.startswith("misspelled.py")]


@pytest.mark.slow
def test_a_misspelled_mount_point_of_a_plan_fails_the_type_check(complaints):
    found = [line for line in complaints if line.startswith("misspelled.py")]
    assert len(found) == 3, found
    assert '"Plan" has no attribute "before_rnu"' in found[0]
    assert '"type[MountPoints]" has no attribute "after_trian"' in found[1]
    assert 'got "Calls", expected "Point"' in found[2]


@pytest.mark.slow
def test_the_typed_code_runs(capsys):
    names = runpy.run_path(str(USER_CODE))
    names["main"]()
    names["own_loop"]()
    for trainer in (
        names["several"](names["nn"].Linear(4, 4), names["nn"].Linear(4, 2)),
        names["mappings"](names["nn"].Linear(4, 2)),
    ):
        assert trainer.train().status == "completed"
