"""VISSL's curves."""

import pytest
from tests.readback import tensorboard_points
from tests.vissl.phases import train

from hookloop_dialects.vissl.hooks import SSLTensorboardHook


@pytest.fixture
def board(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(tmp_path / "board"))


def size(output, targets):
    return output.abs().mean()


def test_loss_and_rate_are_written_at_the_frequency(tmp_path, board):
    hook = SSLTensorboardHook(board)
    train(
        tmp_path, hook, max_epochs=2, setup={"config": {"LOG_FREQUENCY": 2}}, metrics={"size": size}
    )
    folder = tmp_path / "board"
    # Every fifth of the first hundred, too.
    assert [step for step, _ in tensorboard_points(folder, "Training/Loss")] == [0, 2, 4, 5]
    rates = tensorboard_points(folder, "Training/Learning_rate")
    assert [value for _, value in rates] == pytest.approx([0.05] * 4)
    assert [step for step, _ in tensorboard_points(folder, "Testing/size_size_Output_0")] == [0, 1]


@pytest.mark.parametrize(
    ("options", "tags"),
    [
        ({}, set()),
        ({"log_params": True}, {b"Parameters/"}),
        ({"log_params_every_n_iterations": 2}, set()),
        ({"log_params_gradients": True}, {b"Gradients/"}),
    ],
)
def test_parameters_are_plotted_on_request(options, tags, tmp_path, board):
    train(tmp_path, SSLTensorboardHook(board, **options), max_epochs=1)
    board.close()
    (file,) = (tmp_path / "board").glob("events*")
    content = file.read_bytes()
    assert {tag for tag in (b"Parameters/", b"Gradients/") if tag in content} == tags


def test_what_layers_compute_is_plotted_while_they_train(tmp_path, board):
    trainer = train(tmp_path, SSLTensorboardHook(board, log_activation_statistics=2), max_epochs=2)
    points = tensorboard_points(tmp_path / "board", "activations/0/mean")
    assert [step for step, _ in points] == [0, 2, 4]
    assert not trainer.run.model[0]._forward_hooks


class Bar(SSLTensorboardHook):
    """Replaces one event; the others still do their part, as in VISSL."""

    def on_update(self, task):
        self.tb_writer.add_scalar("mine", task.iteration, task.iteration)


@pytest.mark.parametrize(
    ("kind", "gradients"), [(SSLTensorboardHook, [0, 0, 1, 2, 4]), (Bar, [0, 1])]
)
def test_each_event_plots_its_part(tmp_path, kind, gradients):
    plotted = []

    class Board:
        def add_scalar(self, *args): ...
        def flush(self): ...
        def add_histogram(self, tag, values, step):
            if tag.endswith("/0.weight"):
                plotted.append((tag.partition("/")[0], step))

    train(tmp_path, kind(Board(), True, 2, True), max_epochs=2)
    steps = {
        title: sorted(step for name, step in plotted if name == title)
        for title in ("Parameters", "Gradients")
    }
    assert steps == {"Parameters": [-1, 0, 0, 1, 2, 4], "Gradients": gradients}
