"""The evidence for what the README claims: each claim has figures, and none is too old."""

import importlib.util
import json
from pathlib import Path

import pytest

from hookloop.version import VERSION

ROOT = Path(__file__).parent.parent


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FILES = sorted((ROOT / "docs" / "evidence").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_figures_are_not_older_than_the_release_before(path):
    found = json.loads(path.read_text("utf-8"))
    (major, minor), (then_major, then_minor) = (
        map(int, one.split(".")[:2]) for one in (VERSION, found["versions"]["hookloop"])
    )
    assert major == then_major
    assert minor - then_minor <= 1, f"make evidence CLAIM={path.stem}"


def test_a_claim_that_does_not_hold_is_rejected(monkeypatch):
    evidence = load(ROOT / "scripts" / "evidence.py")
    with pytest.raises(evidence.NotShownError):
        evidence.CLAIMS["exactness"].figures(
            '{"result": "different", "iters": 3, "kills": [], "differences": ["x"], "exit_code": 1}'
        )
    with pytest.raises(evidence.NotShownError):
        evidence.CLAIMS["migration"].figures("1 failed, 3 passed in 2 s")


def test_figures_are_those_of_a_claim_and_its_command():
    evidence = load(ROOT / "scripts" / "evidence.py")
    assert FILES
    for path in FILES:
        found = json.loads(path.read_text("utf-8"))
        assert found["claim"] == evidence.CLAIMS[path.stem].says
        assert found["command"] == " ".join(evidence.CLAIMS[path.stem].command)
