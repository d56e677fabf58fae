"""ClassyVision's hooks for TensorBoard and Visdom."""

import sys
from types import SimpleNamespace

import pytest
import torch
from tests.readback import tensorboard_points
from tests.tiny import assert_same_bits, make_data
from tests.vissl.phases import train

from hookloop_dialects.vissl import build_hook
from hookloop_dialects.vissl.classy_vision import hooks as classy


@pytest.fixture
def board(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(tmp_path / "board"))


def size(output, targets):
    return output.abs().mean()


def test_curves_have_a_point_per_phase_and_rates_per_period(tmp_path, board):
    hook = classy.TensorboardPlotHook(board, log_period=2)
    train(tmp_path, hook, max_epochs=2, metrics={"size": size})
    folder = tmp_path / "board"
    assert [step for step, _ in tensorboard_points(folder, "Learning Rate/train")] == [0, 2, 4]
    for phase in ("train", "test"):
        assert [step for step, _ in tensorboard_points(folder, f"Losses/{phase}")] == [0, 1]
    assert [step for step, _ in tensorboard_points(folder, "Meters/test/size/size")] == [0, 1]
    assert hook.state.step_count == {"train": 6, "test": 2}


def test_a_period_below_1_is_rejected(board):
    with pytest.raises(ValueError, match="at least 1, not 0"):
        classy.TensorboardPlotHook(board, 0)


def test_a_config_describes_the_writer(tmp_path):
    settings = {"summary_writer": {"log_dir": str(tmp_path / "logs")}, "log_period": 3}
    hook = build_hook({"name": "tensorboard_plot", **settings})
    assert hook.log_period == 3 and hook.tb_writer.log_dir == str(tmp_path / "logs")
    assert build_hook({"name": "model_tensorboard", **settings}).tb_writer is not None


def test_drawing_the_graph_does_not_change_the_training(tmp_path, board):
    def final(name, *hooks):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Dropout(0.5))
        data = make_data(shuffle=True)
        train(tmp_path / name, *hooks, model=model, train_data=data, seed=1, max_epochs=2)
        return model

    hook = classy.ModelTensorboardHook(board)
    assert_same_bits(final("plain"), final("drawn", hook))
    board.close()
    (file,) = (tmp_path / "board").glob("events*")
    assert b"Linear" in file.read_bytes()


def test_visdom_gets_the_curves_after_test_phases(tmp_path, monkeypatch):
    drawn = []

    class Visdom:
        def __init__(self, server, port):
            assert (server, port) == ("http://here", "8097")

        def line(self, values, points, env, win, opts):
            drawn.append((opts["title"], len(values), points.tolist(), env))

    monkeypatch.setitem(sys.modules, "visdom", SimpleNamespace(Visdom=Visdom))
    hook = classy.VisdomHook("http://here", "8097", title_suffix="!")
    train(tmp_path, hook, max_epochs=2, metrics={"size": size})
    titles = {title for title, *_ in drawn}
    assert {"train_loss!", "test_loss!", "test_size_size!"} <= titles
    assert ("test_loss!", 2, [0.0, 1.0], "main") in drawn
