"""The picture of the loop shows every mount point, and is the one that is committed."""

import importlib.util
from pathlib import Path

import pytest

from hookloop.engine.points import POINTS

SCRIPT = Path(__file__).parents[1] / "scripts" / "loop_picture.py"


@pytest.fixture
def picture(monkeypatch):
    spec = importlib.util.spec_from_file_location("loop_picture", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "loop_picture", module)  # For its dataclass.
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_the_committed_one(picture):
    committed = picture.PICTURE.read_text(encoding="utf-8")
    assert committed == picture.draw(), "run 'make docs'"


def test_every_point_is_in_the_picture(picture):
    drawn = picture.draw()
    for point in POINTS:
        assert f">{point.name}<" in drawn


def test_a_point_that_is_left_out_is_found(picture):
    picture.TRAINING.parts.remove("before_train")
    with pytest.raises(ValueError, match="before_train"):
        picture.draw()
