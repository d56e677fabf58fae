"""Published files: a few keys, named after their own content."""

import hashlib
import re

import pytest
import torch
from tests.mmengine.parts import Scripted

from hookloop_mmengine.hooks import CheckpointHook, Hook


@pytest.fixture
def publish(run, tmp_path):
    def publish(*hooks, keys=("meta", "state_dict"), **options):
        checkpoint = {"type": "CheckpointHook", "published_keys": keys, **options}
        evaluator = [Scripted({"acc": 0.1}, {"acc": 0.5}, {"acc": 0.3})]
        run(*hooks, default_hooks={"checkpoint": checkpoint}, val_evaluator=evaluator)
        return sorted(path for path in tmp_path.rglob("*-????????.pth"))

    return publish


def test_the_last_and_the_best_files_are_published(publish):
    best, last = publish(save_best="acc")
    assert re.fullmatch(r"best_acc_epoch_2-[0-9a-f]{8}\.pth", best.name)
    assert re.fullmatch(r"epoch_3-[0-9a-f]{8}\.pth", last.name)


def test_the_name_holds_the_hash_of_the_file(publish):
    (path,) = publish()
    assert hashlib.sha256(path.read_bytes()).hexdigest()[:8] in path.name


def test_only_the_chosen_keys_are_published(publish):
    (path,) = publish(keys="state_dict")
    saved = torch.load(path, weights_only=True)
    assert list(saved) == ["state_dict"]
    assert sorted(saved["state_dict"]) == ["linear.bias", "linear.weight"]


def test_unknown_keys_are_left_out(publish):
    (path,) = publish(keys=["state_dict", "zebra"])
    assert list(torch.load(path, weights_only=True)) == ["state_dict"]


def test_without_a_last_file_nothing_is_published(publish):
    assert publish(save_last=False) == []


def test_a_failed_run_publishes_nothing(publish, tmp_path):
    class Fail(Hook):
        def after_val(self, runner):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        publish(Fail(), interval=1)
    assert list(tmp_path.glob("*-*.pth")) == []


def test_files_are_published_where_they_are(publish, tmp_path):
    (path,) = publish(out_dir=str(tmp_path / "out"))
    assert path.parent == tmp_path / "out" / tmp_path.name


def test_mmengines_keys_are_found_in_a_native_run(tmp_path):
    from tests.tiny import make_trainer

    hook = CheckpointHook(published_keys=["state_dict", "optimizer"])
    make_trainer(hooks=[hook], run_dir=tmp_path / "run").train()
    (path,) = (tmp_path / "run").glob("epoch_1-*.pth")
    assert list(torch.load(path, weights_only=True)) == ["state_dict", "optimizer"]
