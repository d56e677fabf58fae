"""The wheel and the sdist: what is in them, and that a clean environment can use the wheel."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import click
import pytest
import yaml
from packaging.metadata import Metadata

from hookloop.version import VERSION

pytestmark = pytest.mark.slow  # Builds, and makes an environment.

ROOT = Path(__file__).parents[2]


def run(*command, cwd=ROOT, **variables):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment | variables, check=False,
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The directory with a wheel and a sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, PATH=os.devnull)  # Without Node.
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    return built / f"hookloop-{VERSION}-py3-none-any.whl"


@pytest.fixture(scope="module")
def clean(tmp_path_factory, wheel):
    """The programs of an environment with the wheel, and the other packages of this one."""
    home = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", "--without-pip", home)
    run(
        sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "--quiet",
        "--no-deps", "--no-index", wheel,
    )  # fmt: skip
    # A plain path: the .pth file of an editable install is not read there.
    (place,) = home.glob("lib/python*/site-packages")
    (place / "others.pth").write_text(f"{Path(click.__file__).parents[1]}\n")
    return home / "bin"


def test_the_wheel_has_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    ours = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "hookloop").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert ours <= names
    assert "hookloop/py.typed" in names
    rest = names - ours
    assert all(name.startswith(f"hookloop-{VERSION}.dist-info/") for name in rest)
    assert f"hookloop-{VERSION}.dist-info/licenses/LICENSE" in names


def test_the_metadata_is_what_an_index_accepts(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"hookloop-{VERSION}.dist-info/METADATA")
        points = archive.read(f"hookloop-{VERSION}.dist-info/entry_points.txt").decode()
    found = Metadata.from_email(text)  # Raises for anything that is not valid.
    assert str(found.version) == VERSION
    assert found.license_expression == "Apache-2.0"
    assert found.description_content_type == "text/markdown"
    assert found.description == (ROOT / "README.md").read_text(encoding="utf-8")
    assert "hookloop = hookloop.__main__:main" in points
    assert "[hookloop.dialects]" not in points  # Those are of distributions of their own.


def test_the_sdist_has_what_make_test_needs(built):
    with tarfile.open(built / f"hookloop-{VERSION}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = ["Makefile", "README.md", "LICENSE", "CHANGELOG.md", "conftest.py", "pyproject.toml"]
    for name in (*needed, "src/hookloop/version.py", "scripts/make_docs.py", "docs/site.yml"):
        assert name in names
    folders = {name.partition("/")[0] for name in names}
    assert {"tests", "docs", "examples", "packages", "scripts", "bench"} <= folders
    assert not [name for name in names if "__pycache__" in name or name.startswith(".venv")]


def test_a_clean_environment_has_the_command(clean):
    where = run(clean / "python", "-c", "import hookloop; print(hookloop.__file__)").strip()
    assert Path(where).is_relative_to(clean.parent)
    assert run(clean / "hookloop", "--version").strip() == f"hookloop, version {VERSION}"
    assert "Train PyTorch models" in run(clean / "hookloop", "--help")


def test_a_clean_environment_makes_a_project_and_trains_it(clean, tmp_path):
    run(clean / "hookloop", "new", tmp_path / "project")
    (config,) = (tmp_path / "project").rglob("config.yaml")
    trained = run(
        clean / "hookloop", "train", config, "max_epochs=1", "--run-dir", tmp_path / "run",
        cwd=config.parent, OMP_NUM_THREADS="1",
    )  # fmt: skip
    assert "completed" in trained
    assert (tmp_path / "run" / "summary.json").is_file()


def test_the_version_is_the_same_everywhere():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == VERSION
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.search(r"^## (\d[\d.]*)$", changes, re.MULTILINE)
    assert released is not None and changes.index("## Unreleased") < released.start()
    assert VERSION.split(".") >= released[1].split(".")  # What it will have is not released yet.


def test_public_ci_runs_the_parts_of_the_same_command_as_jobs_of_their_own():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    job = workflow["jobs"]["test"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make ${{ matrix.part }}"]
    parts = set(job["strategy"]["matrix"]["part"])
    of_test = {"style", "engine", "dialects", "board-tests", "peers", "docs"}
    assert parts == of_test
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{part}:", targets, re.MULTILINE) for part in parts)
    # Every test is in one of the jobs that run pytest.
    tests = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert tests["testpaths"] == ["tests", "src", "packages"]


def test_actions_of_ci_are_pinned_to_a_commit():
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: (\S+)", file.read_text(encoding="utf-8"))
        assert used and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", one) for one in used), file.name
