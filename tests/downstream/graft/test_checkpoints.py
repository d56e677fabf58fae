"""Files: MMEngine's own are continued, damaged ones skipped, none of them runs code."""

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.logging import HistoryBuffer
from mmengine.runner.checkpoint import CheckpointLoader, _load_checkpoint
from tests.downstream.graft import toy

from hookloop import dialects
from hookloop.errors import CheckpointError


@pytest.fixture
def graft():
    with dialects.graft("mmengine") as grafted:
        yield grafted


def test_a_training_continues_from_a_file_that_mmengine_wrote(tmp_path):
    toy.make_runner(tmp_path, length=2).train()  # Without the graft.
    hook = toy.Record()
    with dialects.graft("mmengine"):
        runner = toy.make_runner(tmp_path, hook, length=3, resume=True)
        runner.train()
        history = runner.message_hub.get_scalar("train/loss")
    assert isinstance(history, HistoryBuffer)
    iterations = [call[1:4] for call in hook.seen if call[0] == "after_train_iter"]
    assert iterations == [(2, 12 + index, index) for index in range(6)]


def test_files_hold_the_keys_of_mmengine_and_are_loaded_as_plain_data(graft, tmp_path):
    toy.make_runner(tmp_path, length=1).train()
    loaded = torch.load(tmp_path / "epoch_1.pth", weights_only=True)
    assert {"meta", "state_dict", "message_hub", "optimizer", "param_schedulers"} <= set(loaded)
    assert loaded["meta"]["epoch"] == 1 and loaded["meta"]["iter"] == 6
    assert loaded["meta"]["dataset_meta"]["classes"] == ("left", "right")
    assert (tmp_path / "last_checkpoint").read_text() == str(tmp_path / "epoch_1.pth")


def test_the_weights_of_an_average_are_where_mmengine_has_them(tmp_path):
    files = []
    for name in ((), ("mmengine",)):
        directory = tmp_path / str(len(name))
        with dialects.graft(*name):
            toy.make_runner(directory, {"type": "EMAHook"}, length=2).train()
            files.append(torch.load(directory / "epoch_2.pth", weights_only=False))
    for key in ("state_dict", "ema_state_dict"):
        assert files[0][key].keys() == files[1][key].keys()
        assert all(torch.equal(files[0][key][name], files[1][key][name]) for name in files[0][key])


def test_a_damaged_last_checkpoint_is_skipped_for_the_newest_good_one(graft, tmp_path, caplog):
    toy.make_runner(tmp_path, length=2).train()
    last = tmp_path / "epoch_2.pth"
    last.write_bytes(last.read_bytes()[:-50])
    hook = toy.Record()
    toy.make_runner(tmp_path, hook, length=3, resume=True).train()
    assert hook.seen[-2][0] == "after_train"
    assert next(call for call in hook.seen if call[0] == "before_train_iter")[1:3] == (1, 6)


def test_a_damaged_file_that_was_asked_for_is_an_error(graft, tmp_path):
    bad = tmp_path / "bad.pth"
    bad.write_bytes(b"nothing")
    runner = toy.make_runner(tmp_path / "run", resume=True, load_from=str(bad))
    with pytest.raises(CheckpointError, match="bad.pth"):
        runner.train()


class Trap:
    """What a stranger's file would run when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def test_nothing_in_a_file_runs(graft, tmp_path):
    path = tmp_path / "stranger.pth"
    torch.save({"state_dict": {}, "trap": Trap(tmp_path / "made")}, path)
    with pytest.raises(CheckpointError, match="stranger.pth"):
        _load_checkpoint(str(path))
    assert not (tmp_path / "made").exists()


def test_files_of_old_versions_of_torch_are_read(graft, tmp_path):
    path = tmp_path / "old.pth"
    torch.save({"weight": torch.ones(2)}, path, _use_new_zipfile_serialization=False)
    assert torch.equal(CheckpointLoader.load_checkpoint(str(path))["weight"], torch.ones(2))


def test_a_missing_file_is_reported_as_by_mmengine(graft):
    with pytest.raises(FileNotFoundError, match="nowhere.pth"):
        CheckpointLoader.load_checkpoint("nowhere.pth")


class SaveNow(Hook):
    """Save by itself, and read the file at once."""

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        if runner.iter == 3:
            runner.save_checkpoint(runner.work_dir, "now.pth", by_epoch=False)
            self.meta = torch.load(Path(runner.work_dir) / "now.pth", weights_only=True)["meta"]


def test_a_hook_finds_the_file_that_it_has_saved(graft, tmp_path):
    hook = SaveNow()
    toy.make_runner(tmp_path, hook).train()
    assert (hook.meta["epoch"], hook.meta["iter"]) == (0, 4)
    exact = torch.load(tmp_path / "now.pth", weights_only=True)
    assert exact["progress"]["iter"] == 4  # The one that a resume continues from exactly.


def test_a_runner_that_does_not_train_saves_at_once(graft, tmp_path):
    runner = toy.make_runner(tmp_path, length=1)
    runner.train()
    runner.save_checkpoint(str(tmp_path), "after.pth")
    assert torch.load(tmp_path / "after.pth", weights_only=True)["meta"]["epoch"] == 2


def test_published_files_are_written(graft, tmp_path):
    checkpoint = {"published_keys": ["meta", "state_dict"]}
    toy.make_runner(tmp_path, length=1, checkpoint=checkpoint).train()
    (published,) = tmp_path.glob("epoch_1-*.pth")
    assert set(torch.load(published, weights_only=True)) == {"meta", "state_dict"}


def test_files_hold_no_pickled_histories(graft, tmp_path):
    toy.make_runner(tmp_path, length=1).train()
    assert b"HistoryBuffer" not in (tmp_path / "epoch_1.pth").read_bytes()


class Fail(Hook):
    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == 13:
            raise RuntimeError("cut off")


@pytest.mark.parametrize("first", ["mmengine", "graft"])
def test_a_schedule_with_a_function_continues(first, tmp_path):
    def make(directory, *hooks, **options):
        schedule = {"type": "OneCycleLR", "eta_max": 0.1, "total_steps": 18, "by_epoch": False}
        options["param_scheduler"] = schedule
        return toy.make_runner(tmp_path / directory, *hooks, **options)

    with dialects.graft("mmengine"):
        whole = make("whole")
        whole.train()
    context = dialects.graft("mmengine") if first == "graft" else nullcontext()
    with context, pytest.raises(RuntimeError, match="cut off"):
        make("cut", Fail()).train()
    with dialects.graft("mmengine"):
        resumed = make("cut", resume=True)
        resumed.train()
    assert resumed.optim_wrapper.get_lr() == whole.optim_wrapper.get_lr()


def test_a_last_checkpoint_without_its_directory_is_found(graft, tmp_path, caplog):
    toy.make_runner(tmp_path, length=1).train()
    (tmp_path / "last_checkpoint").write_text("epoch_1.pth\n")
    runner = toy.make_runner(tmp_path, length=2, resume=True)
    runner.train()
    assert runner.iter == 12
    assert "There is no checkpoint" not in caplog.text
