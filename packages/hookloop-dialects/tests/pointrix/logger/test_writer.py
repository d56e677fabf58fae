"""Pointrix's writers and progress bars."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.pointrix.cloud import train
from tests.readback import tensorboard_points

from hookloop.hooks import WriteTensorBoard
from hookloop_dialects.pointrix import Hook, Logger, ProgressLogger, Writer, parse_writer
from hookloop_dialects.pointrix.logger import LOGGER_REGISTRY, TensorboardWriter
from hookloop_dialects.pointrix.logger.writer import number, pixels


def test_writers_are_chosen_by_their_type(tmp_path):
    writer = parse_writer({"writer_type": "TensorboardWriter"}, tmp_path)
    assert isinstance(writer, TensorboardWriter)
    writer.write_scalar("a", torch.tensor(1.0), 1)
    writer.write_image("b", torch.zeros(4, 6, 3), 1)
    writer.write_config("config", {"lr": 1}, 0)
    writer.finish()
    assert list(tmp_path.glob("events.out.tfevents*"))
    with pytest.raises(KeyError, match="Did you mean 'TensorboardWriter'"):
        parse_writer({"writer_type": "TensorbordWriter"}, tmp_path)


def test_a_writer_has_to_write():
    with pytest.raises(NotImplementedError, match="Writer has no write_scalar"):
        Writer("").write_scalar("a", 1, 1)


def test_tensorboard_gets_the_numbers(tmp_path):
    writer = TensorboardWriter(tmp_path, flush_secs=1)
    for step in (1, 2):
        writer.write_scalar("a", torch.tensor(step * 1.5, requires_grad=True), step)
    writer.finish()
    assert tensorboard_points(tmp_path, "a") == [(1, 1.5), (2, 3.0)]


def test_the_writer_of_the_run_writes_with_the_runs_own(tmp_path):
    class Write(Hook):
        def after_train_iter(self, trainner):
            writer = trainner.writer
            writer.write_scalar("a", torch.tensor(2.0), trainner.global_step)
            writer.write_image("b", torch.ones(2, 4, 3), trainner.global_step, caption="c")
            writer.write_config("cfg", {"lr": 0.125}, 0)

    train(tmp_path, Write(), WriteTensorBoard(), max_iters=2)
    folder = tmp_path / "run" / "tensorboard"
    assert tensorboard_points(folder, "a") == [(1, 2.0), (2, 2.0)]
    content = b"".join(file.read_bytes() for file in folder.rglob("events*"))
    assert b"PNG" in content and b"lr: 0.125" in content


def test_a_writer_of_ones_own_is_found_by_its_name(monkeypatch, tmp_path):
    monkeypatch.setattr(LOGGER_REGISTRY, "_registered", {})

    @LOGGER_REGISTRY.register()
    class Mine(Writer):
        def __init__(self, log_dir, color="blue"):
            super().__init__(log_dir)
            self.color = color

    settings = SimpleNamespace(writer_type="Mine")  # A dataclass, as Pointrix parses it.
    writer = parse_writer(settings, tmp_path, color="red")
    assert (writer.logfolder, writer.color) == (tmp_path, "red")


@pytest.mark.parametrize("method", ["write_image", "write_config"])
def test_what_a_subclass_forgets_is_an_error(method):
    with pytest.raises(NotImplementedError, match=f"Writer has no {method}"):
        getattr(Writer(""), method)("a", {}, 1)


def test_numbers_and_pictures_come_from_tensors_or_not():
    assert number(torch.tensor(2.5, requires_grad=True)) == number(2.5) == 2.5
    picture = torch.rand(2, 3, 3)
    assert np.array_equal(pixels(picture), pixels(picture.numpy()))
    assert pixels(picture).dtype == np.uint8


def test_bars_count_their_steps():
    bars = ProgressLogger("training", suffix="!")
    bars.add_task("train", "Training", 10, {"loss": 1})
    bars.start()
    bars.start_task("train")
    bars.update("train", 4, {"loss": 2, "lr": 3})
    (task,) = bars.progress_bar.tasks
    assert (task.completed, task.total, task.fields["log"]) == (4, 10, "loss: 2  lr: 3")
    bars.stop_task("train")
    bars.reset("train", visible=False)
    assert (task.completed, task.visible) == (0, False)
    bars.stop()
    with pytest.raises(KeyError, match="val"):
        bars.update("val", 1)


def test_consoles_have_pointrixs_width():
    assert Logger.width == 120


def test_pictures_have_their_channels_first_or_last():
    picture = torch.zeros(3, 5, 6)
    picture[0] = 1.0
    assert pixels(picture).shape == pixels(picture.permute(1, 2, 0)).shape == (5, 6, 3)
    assert pixels(picture)[0, 0].tolist() == [255, 0, 0]
    assert pixels(np.zeros((5, 6))).shape == (5, 6, 1)
