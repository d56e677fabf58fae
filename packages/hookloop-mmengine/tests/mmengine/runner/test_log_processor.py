"""Lines of the log, as MMEngine formats them."""

from types import SimpleNamespace

import pytest
import torch

from hookloop_mmengine.logging import MessageHub
from hookloop_mmengine.runner import LogProcessor

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU adds its memory")


@pytest.fixture
def runner():
    hub = MessageHub("log processor")
    hub.update_info("eta", 3723.9)
    for step in range(4):
        hub.update_scalar("train/lr", 0.1 / (step + 1))
        hub.update_scalar("train/loss", float(step))
        hub.update_scalar("train/acc", float(step))
        hub.update_scalar("train/time", 0.5)
        hub.update_scalar("train/data_time", 0.25)
    return SimpleNamespace(
        message_hub=hub, epoch=0, iter=3, max_epochs=12, max_iters=120,
        train_dataloader=[0] * 10, val_dataloader=[0] * 2, test_dataloader=[0] * 2,
        _train_loop=object(),
    )  # fmt: skip


def add(runner, mode, *rows):
    for row in rows:
        for name, value in row.items():
            runner.message_hub.update_scalar(f"{mode}/{name}", value)


def test_a_line_of_the_training(runner):
    tag, line = LogProcessor(window_size=2).get_log_after_iter(runner, 3, "train")
    assert line == (
        "Epoch(train) [ 1][ 4/10]  lr: 2.5000e-02  eta: 1:02:03  time: 0.5000  "
        "data_time: 0.2500  loss: 2.5000  acc: 3.0000"
    )
    assert tag == {
        "lr": 0.025, "loss": 2.5, "acc": 3.0, "time": 0.5, "data_time": 0.25, "epoch": 1, "iter": 4,
    }  # fmt: skip


def test_a_line_of_iterations(runner):
    _, line = LogProcessor(by_epoch=False, num_digits=2).get_log_after_iter(runner, 3, "train")
    assert line.startswith("Iter(train) [  4/120]  lr: 2.50e-02  eta: 1:02:03  time: 0.50  ")


def test_names_may_keep_their_mode(runner):
    tag, line = LogProcessor(log_with_hierarchy=True).get_log_after_iter(runner, 3, "train")
    assert "train/loss" in tag
    assert "train/lr: 2.5000e-02" in line
    assert "time: 0.5000" in line


def test_the_window_is_no_longer_than_the_training(runner):
    runner.iter = 1
    tag, _ = LogProcessor(window_size=10).get_log_after_iter(runner, 1, "train")
    assert tag["loss"] == 2.5  # Of the last two values.


def test_what_is_averaged_can_be_chosen(runner):
    tag, _ = LogProcessor(window_size=4, mean_pattern=".*acc.*").get_log_after_iter(
        runner, 3, "train"
    )
    assert (tag["loss"], tag["acc"]) == (3, 1.5)


def test_own_statistics(runner):
    custom = [
        {"data_src": "loss", "log_name": "worst", "method_name": "max", "window_size": "global"},
        {"data_src": "loss", "log_name": "recent", "method_name": "mean", "window_size": 2},
        {"data_src": "acc", "method_name": "min", "window_size": "epoch"},
    ]
    runner.iter = 99
    processor = LogProcessor(custom_cfg=custom)
    tag, line = processor.get_log_after_iter(runner, 1, "train")
    assert (tag["worst"], tag["recent"], tag["acc"]) == (3, 2.5, 2)
    assert "worst: 3.0000" in line
    assert processor.custom_cfg == custom


@pytest.mark.parametrize(
    ("mode", "by_epoch", "start"),
    [
        ("val", True, "Epoch(val) [ 1][1/2]"),
        ("test", True, "Epoch(test) [1/2]"),
        ("val", False, "Iter(val) [1/2]"),
        ("test", False, "Iter(test) [1/2]"),
    ],
)
def test_a_batch_of_an_evaluation(runner, mode, by_epoch, start):
    runner.epoch = 1
    add(runner, mode, {"time": 0.1, "data_time": 0.05}, {"time": 0.3, "data_time": 0.15})
    tag, line = LogProcessor(by_epoch=by_epoch).get_log_after_iter(runner, 0, mode)
    assert line.startswith(f"{start}    eta: 1:02:03  time: ")
    assert tag["iter"] == 4
    assert tag.get("epoch") == (1 if (mode, by_epoch) == ("val", True) else None)


@pytest.mark.parametrize(
    ("mode", "by_epoch", "start"),
    [
        ("val", True, "Epoch(val) [3][2/2]"),
        ("test", True, "Epoch(test) [2/2]"),
        ("val", False, "Iter(val) [2/2]"),
    ],
)
def test_the_end_of_an_evaluation(runner, mode, by_epoch, start):
    runner.epoch = 3
    add(runner, mode, {"acc": 0.1}, {"acc": 0.5})
    add(runner, mode, {"time": 0.1, "data_time": 0.05}, {"time": 0.3, "data_time": 0.15})
    tag, line = LogProcessor(by_epoch=by_epoch).get_log_after_epoch(runner, 2, mode)
    assert line == f"{start}    acc: 0.5000  data_time: 0.1000  time: 0.2000"
    assert tag["acc"] == 0.5


def test_metrics_that_are_not_numbers(runner):
    add(runner, "test", {"acc": 0.5})
    runner.message_hub.update_info("test/table", "a | b")
    plain, line = LogProcessor().get_log_after_epoch(runner, 2, "test")
    assert "table: \na | b\n" in line
    assert "table" not in plain
    tag, _ = LogProcessor().get_log_after_epoch(runner, 2, "test", with_non_scalar=True)
    assert tag["table"] == "a | b"
