"""Numbers, bars and the table of a validation."""

import json
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch
from tests.pointrix.cloud import Give, Kept, train, train_cloud

from hookloop.engine.hook import Hook as NativeHook
from hookloop.hooks import WriteMetrics
from hookloop_dialects.pointrix.hook import LogHook
from hookloop_dialects.pointrix.hook.log_hook import _channels_last


def test_our_log_hook_writes_what_pointrixs_does_and_the_means_of_a_validation(tmp_path):
    writer = Kept()
    train_cloud(tmp_path, Give(writer), LogHook(), max_iters=2, val_every=2, val_data=[10, 20])
    names = [(name, step) for name, _, step in writer.scalars]
    assert names[:3] == [("num_pt", 1), ("pos_lr", 1), ("loss", 1)]
    assert writer.scalars[-1] == ("test/loss_viewpoint - psnr", 15.0, 3)
    assert writer.images == [("test_view_val/render", (4, 6, 3), 3)] * 2


def test_log_hook_does_without_a_point_cloud(tmp_path):
    writer = Kept()
    train(tmp_path, Give(writer), LogHook(), max_iters=1)
    assert [name for name, _, _ in writer.scalars] == ["loss"]


def test_without_a_writer_of_its_own_the_run_writes(tmp_path):
    train(tmp_path, LogHook(), WriteMetrics(every=1), max_iters=2)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [line["iter"] for line in map(json.loads, lines) if "loss" in line] == [1, 2]


class Depths(LogHook):
    """Averages names of its own."""

    def __init__(self):
        super().__init__()
        self.losses_test = {"psnr": 0.0, "abs_rel": 0.0}


class Trainner:
    """As much of a trainer as a validation needs."""

    metric_dict: ClassVar = {"abs_rel": 2.0, "rgb_file_name": "a.png"}
    val_dataset_size, global_step = 1, 3
    run = SimpleNamespace(stream="")

    def __init__(self, written):
        self.writer = SimpleNamespace(write_scalar=lambda *args: written.append(args))


def test_a_subclass_averages_names_of_its_own_and_each_validation_begins_at_zero():
    written = []
    hook = Depths()
    for _ in range(2):
        hook.after_val_iter(Trainner(written))
        hook.after_val(Trainner(written))
    assert written == [("test/loss_viewpoint - abs_rel", 2.0, 3)] * 2


def test_the_loss_on_the_bar_is_smoothed(tmp_path):
    hook, writer = LogHook(), Kept()
    train_cloud(tmp_path, Give(writer), hook, max_iters=2)
    first, second = (value for name, value, _ in writer.scalars if name == "loss")
    expected = 0.4 * second + 0.6 * 0.4 * first
    assert float(hook.bar_info["loss"]) == pytest.approx(expected, abs=1e-5)


def test_the_bar_stops_at_the_end_and_after_a_failure(tmp_path):
    class Fail(NativeHook):
        def after_train_iter(self, run):
            raise RuntimeError("broken")

    done, failed = LogHook(), LogHook()
    train(tmp_path, done, max_iters=1)
    assert done.progress_bar.progress_bar.live.is_started is False
    with pytest.raises(RuntimeError, match="broken"):
        train(tmp_path / "failed", failed, Fail())
    assert failed.progress_bar.progress_bar.live.is_started is False
    LogHook().exception()  # Before the training there is no bar.


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((3, 4, 6), (4, 6, 3)),
        ((1, 3, 4, 6), (4, 6, 3)),
        ((1, 4, 6), (4, 6, 1)),
        ((4, 6, 3), (4, 6, 3)),
    ],
)
def test_channels_are_moved_to_the_end(shape, expected):
    assert tuple(_channels_last(torch.zeros(shape)).shape) == expected
