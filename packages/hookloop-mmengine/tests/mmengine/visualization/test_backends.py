"""Backends of the visualizer: local files and TensorBoard."""

import json

import numpy as np
import pytest
import torch

from hookloop_mmengine.config import Config
from hookloop_mmengine.visualization import (
    BaseVisBackend,
    LocalVisBackend,
    TensorboardVisBackend,
)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), torch.tensor(2.0), np.array([2.0])])
def test_numbers_come_in_many_forms(tmp_path, value):
    LocalVisBackend(str(tmp_path)).add_scalar("x", value, step=3)
    assert lines(tmp_path / "scalars.json") == [{"x": 2, "step": 3}]


def test_several_numbers_are_one_line_in_both_files(tmp_path):
    backend = LocalVisBackend(str(tmp_path / "new"))
    backend.add_scalars({"a": 1, "b": torch.tensor(0.5)}, step=2, file_path="run.json")
    backend.add_scalars({"a": 2, "step": 9}, step=3)
    assert lines(tmp_path / "new" / "scalars.json") == [
        {"a": 1, "b": 0.5, "step": 2}, {"a": 2, "step": 9},
    ]  # fmt: skip
    assert lines(tmp_path / "new" / "run.json") == [{"a": 1, "b": 0.5, "step": 2}]


def test_what_json_cannot_hold_is_still_readable(tmp_path):
    LocalVisBackend(str(tmp_path)).add_scalar("x", float("nan"))
    # Strict parsers reject a bare NaN.
    assert lines(tmp_path / "scalars.json") == [{"x": "NaN", "step": 0}]


def test_the_config_is_written(tmp_path):
    LocalVisBackend(str(tmp_path), config_save_file="c.py").add_config(Config({"a": 1}))
    assert (tmp_path / "c.py").read_text() == "a = 1\n"


def test_an_image_is_written(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((2, 3, 3), dtype=np.uint8)
    pixels[0, 0] = (255, 0, 0)
    LocalVisBackend(str(tmp_path)).add_image("img", pixels, step=4)
    with image.open(tmp_path / "vis_image" / "img_4.png") as saved:
        assert saved.size == (3, 2)
        assert saved.getpixel((0, 0)) == (255, 0, 0)


def test_a_directory_is_needed_and_made_late(tmp_path):
    backend = LocalVisBackend(str(tmp_path / "late"))
    assert not (tmp_path / "late").exists()
    assert backend.experiment is backend
    with pytest.raises(ValueError, match="BaseVisBackend needs save_dir"):
        _ = BaseVisBackend().directory


def test_a_base_backend_does_nothing(tmp_path):
    backend = BaseVisBackend(str(tmp_path / "none"))
    backend.add_scalar("a", 1)
    backend.add_scalars({"a": 1})
    backend.add_config({})
    backend.add_graph(None, None)
    backend.add_image("a", None)
    backend.close()
    assert not (tmp_path / "none").exists()


def test_tensorboard_gets_numbers_and_the_config(tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    backend = TensorboardVisBackend(str(tmp_path))
    backend.add_scalar("x", torch.tensor(2.0), step=3)
    backend.add_scalars({"y": 1, "step": 8, "text": "left out"}, step=3)
    backend.add_config(Config({"a": 1}))
    backend.close()
    backend.close()
    accumulator = events.EventAccumulator(str(tmp_path))
    accumulator.Reload()
    found = {
        tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }
    assert found == {"x": [(3, 2)], "y": [(8, 1)]}
    assert any("config" in tag for tag in accumulator.Tags()["tensors"])


def test_tensorboard_is_opened_late(tmp_path):
    TensorboardVisBackend(str(tmp_path)).close()
    assert list(tmp_path.iterdir()) == []
