"""The trainings "before" of the migration pages, made with the real packages.

A page shows a script of tests/downstream/migration and what it prints; here it is run.
``make downstream`` installs the packages; elsewhere the trainings are skipped.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pages import ROOT, blocks_of
from tests.printed import assert_printed

PACKAGES = ["ignite", "lightning", "mmengine", "transformers"]
SCRIPTS = Path(__file__).parent / "migration"


def page(package):
    return ROOT / "docs" / "migration" / f"{package}.md"


def result(package):
    """What the page says that both trainings print: the first output after the one before."""
    blocks = iter(blocks_of(page(package)))
    next(block for block in blocks if block.text.startswith(f"# before_{package}.py"))
    return next(block.text for block in blocks if block.language == "text")


def test_every_script_is_on_its_page():
    assert {path.stem for path in SCRIPTS.glob("*.py")} == {f"before_{name}" for name in PACKAGES}
    for package in PACKAGES:
        script = (SCRIPTS / f"before_{package}.py").read_text(encoding="utf-8")
        assert script in [block.text for block in blocks_of(page(package))], package


@pytest.mark.parametrize("package", PACKAGES)
def test_the_training_before_has_the_result_of_the_training_after(package, tmp_path):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"only `make downstream` installs {package}")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", SCRIPTS / f"before_{package}.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert_printed(result(package), done.stdout.strip().splitlines()[-1], package)
