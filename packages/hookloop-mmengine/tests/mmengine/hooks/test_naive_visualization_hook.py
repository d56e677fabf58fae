"""Images of test batches for the visualizer."""

from types import SimpleNamespace

import pytest
import torch

from hookloop_mmengine.hooks import NaiveVisualizationHook


class Visualizer:
    def __init__(self):
        self.calls, self.graphs = [], []

    def add_graph(self, model, data_batch):
        self.graphs.append(model)

    def add_datasample(self, name, image, sample=None, **options):
        self.calls.append((name, tuple(image.shape), sample, options))


@pytest.fixture
def runner():
    return SimpleNamespace(visualizer=Visualizer(), model="model")


def test_the_graph_of_the_model_is_shown(runner):
    NaiveVisualizationHook().before_train(runner)
    assert runner.visualizer.graphs == ["model"]


@pytest.mark.parametrize(
    "wrap", [lambda x: {"inputs": x}, lambda x: (x, None), lambda x: [list(x), 0]]
)
def test_images_come_with_their_predictions(runner, wrap):
    images = torch.zeros(2, 3, 4, 5)
    hook = NaiveVisualizationHook(draw_gt=False)
    hook.after_test_iter(runner, 7, wrap(images), ["first"])
    options = {"draw_gt": False, "draw_pred": True, "step": 7}
    assert runner.visualizer.calls == [
        ("test_img_7_0", (4, 5, 3), "first", options),  # Channels last.
        ("test_img_7_1", (4, 5, 3), None, options),
    ]


def test_batches_off_the_interval_are_skipped(runner):
    hook = NaiveVisualizationHook(interval=2)
    for index in range(4):
        hook.after_test_iter(runner, index, {"inputs": torch.zeros(1, 2, 2)}, None)
    assert [call[0] for call in runner.visualizer.calls] == ["test_img_1_0", "test_img_3_0"]


def test_a_batch_without_images_shows_nothing(runner):
    NaiveVisualizationHook().after_test_iter(runner, 0, None, None)
    NaiveVisualizationHook().after_test_iter(runner, 0, {"inputs": "text"}, None)
    assert runner.visualizer.calls == []
