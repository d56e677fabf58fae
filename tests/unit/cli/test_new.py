"""``hookloop new``: a project that trains and passes its own test."""

import subprocess
from pathlib import Path

import pytest
import yaml
from tests import warm
from tests.unit.cli.conftest import Invoke


def test_a_project_has_its_files(project: Path, invoke: Invoke) -> None:
    result = invoke("new", "digits", "--name", "123")
    assert result.exit_code == 0, result.output
    made = {str(path.relative_to("digits")) for path in Path("digits").rglob("*") if path.is_file()}
    assert made == {
        *("model.py", "data.py", "hooks.py", "config.yaml", "tests/test_project.py"),
        *("README.md", "pyproject.toml", ".gitignore"),
    }
    assert yaml.safe_load(Path("digits/config.yaml").read_text())["name"] == "123"
    readme = Path("digits/README.md").read_text()
    assert readme.startswith("# 123\n") and "$schema=hookloop.schema.json" in readme


def test_a_directory_that_is_not_empty_is_rejected(project: Path, invoke: Invoke) -> None:
    before = sorted(project.iterdir())
    for directory, message in ((".", "is not empty"), ("config.yaml", "is a file")):
        result = invoke("new", directory, "--name", "x")
        assert result.exit_code == 2 and message in result.stderr
    assert sorted(project.iterdir()) == before
    (project / "empty").mkdir()
    assert invoke("new", "empty").exit_code == 0


@pytest.mark.parametrize("name", ["a b", "", "-x", "../x", "a'b"])
def test_a_name_becomes_part_of_files(project: Path, invoke: Invoke, name: str) -> None:
    result = invoke("new", "fresh", "--name", name)
    assert result.exit_code == 2 and "cannot be the name of a project" in result.stderr
    assert not (project / "fresh").exists()


@pytest.mark.slow
def test_it_trains_and_passes_its_own_test(project: Path, invoke: Invoke) -> None:
    assert invoke("new", "digits").exit_code == 0
    for command in (["hookloop", "train", "config.yaml"], ["pytest", "-q"]):
        done = subprocess.run(
            [warm.python(), "-m", *command],
            cwd="digits",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    (run,) = Path("digits/runs").iterdir()
    assert run.name.endswith("_digits") and list(run.glob("best_accuracy_*.pth"))


@pytest.mark.slow
def test_a_dialect_passes_its_own_test(project: Path, invoke: Invoke) -> None:
    assert invoke("new", "theirs", "--dialect", "knots").exit_code == 0
    assert Path("theirs/src/hookloop_knots/dialect.py").is_file()
    done = subprocess.run(
        [warm.python(), "-m", "pytest", "-q"],
        cwd="theirs",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    assert invoke("new", "other", "--dialect", "My Knots").exit_code == 2
