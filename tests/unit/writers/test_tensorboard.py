import io
import logging
import time

import numpy as np
import torch
from PIL import Image as Pillow
from tests.readback import events, tensorboard_points
from torch.utils.tensorboard import SummaryWriter

from hookloop.writers.records import Config, Graph, Histogram, Image, Scalars, Table, Text
from hookloop.writers.tensorboard import TensorBoard


def write(directory, *records, **options):
    writer = TensorBoard(directory, **options)
    writer.write(records)
    writer.close()
    return events(directory)


def test_an_image_is_read_back_with_the_same_pixels(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    (event,) = write(tmp_path, Image("val/sample", pixels, 4)).Images("val/sample")
    assert event.step == 4
    decoded = np.asarray(Pillow.open(io.BytesIO(event.encoded_image_string)))
    assert np.array_equal(decoded, pixels)


def test_a_histogram_has_all_values(tmp_path):
    found = write(tmp_path, Histogram("weights", torch.arange(100.0), 2))
    (event,) = found.Histograms("weights")
    assert (event.step, event.histogram_value.num, event.histogram_value.max) == (2, 100, 99)


def test_text_and_tables_are_written_as_markdown(tmp_path):
    table = Table("scores", ["class", "count"], [["cat", 3]], 1)
    found = write(tmp_path, Text("note", "hello", 1), table)
    texts = {
        tag: found.Tensors(tag)[0].tensor_proto.string_val[0] for tag in found.Tags()["tensors"]
    }
    assert texts["note/text_summary"] == b"hello"
    assert b"| cat | 3 |" in texts["scores/text_summary"]


def test_drawing_the_graph_does_not_change_the_model_or_the_random_state(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Dropout())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    found = write(tmp_path, Graph(model, torch.randn(4, 2, generator=torch.Generator())))
    assert b"Linear" in found.Graph().SerializeToString()
    assert model.training and torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_model_that_cannot_be_traced_is_only_a_warning(tmp_path, caplog):
    class Untraceable(torch.nn.Module):
        def forward(self, inputs):
            raise ValueError("not like this")

    with caplog.at_level(logging.WARNING, "hookloop"):
        write(tmp_path, Graph(Untraceable(), torch.zeros(1)), Scalars({"loss": 1.0}, 1))
    assert "cannot be drawn" in caplog.text
    assert tensorboard_points(tmp_path, "loss") == [(1, 1.0)]


def test_hyper_parameters_are_written_with_the_results(tmp_path):
    from tensorboard.plugins.hparams.metadata import EXPERIMENT_TAG, SESSION_START_INFO_TAG

    config = Config({"optimizer": {"lr": 0.1}, "amp": True, "none": None})
    found = write(tmp_path, config, Scalars({"val/accuracy": 0.9}, 1, phase="val"))
    content = found.SummaryMetadata(SESSION_START_INFO_TAG).plugin_data.content
    assert b"optimizer.lr" in content and b"amp" in content
    assert b"val/accuracy" in found.SummaryMetadata(EXPERIMENT_TAG).plugin_data.content
    assert "config/text_summary" in found.Tags()["tensors"]


def test_purge_step_hides_the_events_that_are_written_again(tmp_path):
    write(tmp_path, *(Scalars({"loss": float(step)}, step) for step in (1, 2, 3)))
    write(tmp_path, Scalars({"loss": 20.0}, 2), purge_step=2)
    assert tensorboard_points(tmp_path, "loss") == [(1, 1.0), (2, 20.0)]


def test_two_parts_of_a_run_within_a_second_are_read_in_order(tmp_path):
    # As left by a process with a higher number that started in the same second.
    first = SummaryWriter(str(tmp_path), purge_step=1)
    first.add_scalar("loss", 1.0, 1)
    first.close()
    (file,) = tmp_path.iterdir()
    file.rename(tmp_path / f"events.out.tfevents.{int(time.time())}.zz.9.0")
    second = TensorBoard(tmp_path, purge_step=2)
    second.write([Scalars({"loss": 0.5}, 2, 1, "train", "iter")])
    second.close()
    assert [step for step, _ in tensorboard_points(tmp_path, "loss")] == [1, 2]
