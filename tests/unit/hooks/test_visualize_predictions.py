import logging

import pytest
import torch
from tests.readback import events, png
from tests.tiny import make_classifier

from hookloop.errors import HookError
from hookloop.hooks import VisualizePredictions, WriteTensorBoard


def images(samples=6, channels=1):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(samples, channels, 8, 8, generator=generator)
    return [(inputs, torch.arange(samples) % 3)]


def make_trainer(tmp_path, *hooks, channels=1):
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64 * channels, 3))
    data = images(channels=channels)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return make_classifier(
        model=model, optimizer=optimizer, train_data=data, val_data=data, data={"test": data},
        hooks=hooks, run_dir=tmp_path,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 3])
def test_images_are_shown_with_their_predictions(tmp_path, channels):
    hook = VisualizePredictions(class_names=["ant", "bee", "cow"], examples=4)
    trainer = make_trainer(tmp_path, hook, WriteTensorBoard(), channels=channels)
    trainer.train()
    trainer.test()
    assert {path.name for path in (tmp_path / "visual").iterdir()} == {
        "val_epoch_1_batch_0.png",
        "test_epoch_1_batch_0.png",
    }
    assert png(tmp_path / "visual" / "val_epoch_1_batch_0.png").std() > 10
    assert "val/predictions/0" in events(tmp_path / "tensorboard").Tags()["images"]


def test_a_function_draws_anything_else(tmp_path):
    def draw(run):
        return run.output.softmax(1)

    hook = VisualizePredictions(draw, batches=2, streams=["val"])
    make_classifier(hooks=[hook], run_dir=tmp_path).train()
    assert len(list((tmp_path / "visual").iterdir())) == 2
    assert png(tmp_path / "visual" / "val_epoch_1_batch_1.png").shape == (4, 3)


def test_a_drawing_that_fails_does_not_end_the_run(tmp_path, caplog):
    def draw(run):
        raise ValueError("no paper")

    with caplog.at_level(logging.WARNING, "hookloop"):
        outcome = make_classifier(hooks=[VisualizePredictions(draw)], run_dir=tmp_path).train()
    assert outcome.status == "completed" and "no paper" in caplog.text


def test_counts_below_one_are_rejected():
    with pytest.raises(HookError, match="batches must be at least 1, not 0"):
        VisualizePredictions(batches=0)
