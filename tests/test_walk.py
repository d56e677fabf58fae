"""The paths that docs/architecture.md describes are those that real trainings take."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def walk():
    spec = importlib.util.spec_from_file_location("walk", ROOT / "scripts" / "walk.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def named_below(heading):
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([\w/]+\.py)` \|", section, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("heading", "way"),
    [
        ("The path of a number", "way_of_the_loss"),
        ("The path of a checkpoint", "way_of_a_checkpoint"),
    ],
)
def test_a_training_enters_the_files_of_the_table(heading, way, walk, tmp_path):
    named = named_below(heading)
    assert len(named) > 5
    assert set(named) <= getattr(walk, way)(tmp_path).names()
