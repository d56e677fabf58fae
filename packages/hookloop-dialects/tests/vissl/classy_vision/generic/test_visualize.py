"""Curves and graphs."""

import pytest
import torch

from hookloop_dialects.vissl.classy_vision.generic import visualize


class Server:
    def __init__(self, connected=True):
        self.connected = connected
        self.drawn = []

    def check_connection(self):
        return self.connected

    def line(self, values, steps, **options):
        self.drawn.append((values, steps, options))
        return "window"


def test_curves_are_drawn_together():
    server = Server()
    curves = {"train_loss": [2.0, 1.0], "test_loss": [3.0, 2.5], "batch time": [9.0, 9.0]}
    assert visualize.plot_learning_curves(curves, server, env="e", win="w", title="t") == "window"
    ((values, steps, options),) = server.drawn
    assert values.tolist() == [[2.0, 3.0], [1.0, 2.5]] and steps.tolist() == [[0, 0], [1, 1]]
    assert options["opts"]["legend"] == ["train_loss", "test_loss"]
    assert (options["env"], options["win"]) == ("e", "w")


@pytest.mark.parametrize("server", [None, Server(connected=False)])
def test_without_a_connection_nothing_is_drawn(server, caplog):
    assert visualize.plot_learning_curves({}, server) is None
    assert "no connection to Visdom" in caplog.text


def test_a_graph_leaves_the_model_as_it_was(tmp_path):
    class Writer:
        def add_graph(self, model, input_to_model):
            assert not model.training and input_to_model[0].shape == (1, 4)

        def flush(self):
            self.is_flushed = True

    model, writer = torch.nn.Linear(4, 1).train(), Writer()
    visualize.plot_model(model, (4,), writer=writer)
    assert model.training and writer.is_flushed
    with pytest.raises(AssertionError, match="writer, or the folder"):
        visualize.plot_model(model)
    visualize.plot_model(model, (4,), folder=str(tmp_path), train=True)
    assert list(tmp_path.glob("events*"))
