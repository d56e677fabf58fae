"""Which files there are, and that an old one goes only when its successor is durable."""

import os

import pytest
import torch
from mmengine.hooks import Hook
from tests.downstream.graft import toy

from hookloop import dialects
from hookloop_mmengine.graft.saving import LaterRemoval, SaveFiles


def test_few_files_are_kept_and_the_best_one(tmp_path):
    names = []
    for name in ((), ("mmengine",)):
        directory = tmp_path / str(len(name))
        checkpoint = {"max_keep_ckpts": 1, "save_best": "auto", "rule": "less"}
        with dialects.graft(*name):
            toy.make_runner(directory, length=4, checkpoint=checkpoint).train()
        names.append(toy.files_in(directory))
    assert names[0] == names[1]


def test_another_directory_gets_the_files(tmp_path):
    names = []
    for name in ((), ("mmengine",)):
        directory = tmp_path / f"run_{len(name)}"
        checkpoint = {"out_dir": str(tmp_path / "out")}
        with dialects.graft(*name):
            toy.make_runner(directory, length=2, checkpoint=checkpoint).train()
        names.append(toy.files_in(tmp_path / "out" / directory.name))
    assert names[0] == names[1] == ["epoch_1.pth", "epoch_2.pth"]


def test_each_iteration_is_saved_in_another_directory(tmp_path):
    checkpoint = {"out_dir": str(tmp_path / "out"), "interval": 1, "max_keep_ckpts": 2}
    with dialects.graft("mmengine"):
        for _ in range(2):  # The second continues what the first has trained.
            runner = toy.make_runner(
                tmp_path / "run", by_epoch=False, length=40, checkpoint=checkpoint, resume=True
            )
            runner.train()
    files = tmp_path / "out" / "run"
    assert toy.files_in(files) == ["iter_39.pth", "iter_40.pth"]
    assert (tmp_path / "run" / "last_checkpoint").read_text() == str(files / "iter_40.pth")


class ReadPointer(Hook):
    """Note what `last_checkpoint` names, and whether that is there."""

    priority = "LOWEST"

    def __init__(self):
        self.seen = []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        pointer = os.path.join(runner.work_dir, "last_checkpoint")
        if os.path.exists(pointer):
            with open(pointer) as file:
                path = file.read()
            self.seen.append((int(path.rpartition("_")[2].removesuffix(".pth")), path))
            assert os.path.isfile(path)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_pointer_never_goes_back_and_names_a_whole_file(tmp_path, elsewhere):
    hook = ReadPointer()
    checkpoint = {"interval": 1, **({"out_dir": str(tmp_path / "out")} if elsewhere else {})}
    with dialects.graft("mmengine"):
        toy.make_runner(
            tmp_path / "run", hook, by_epoch=False, length=30, checkpoint=checkpoint
        ).train()
    numbers = [number for number, _ in hook.seen]
    assert numbers == sorted(numbers)
    assert numbers[-1] > 1


class FailLast(Hook):
    """Fail in the sweep in which a checkpoint was asked for, after the hook that asked."""

    priority = "LOWEST"

    def __init__(self, epoch):
        self.epoch = epoch

    def after_train_epoch(self, runner):
        if runner.epoch == self.epoch:
            raise ValueError("at the end of an epoch")


@pytest.mark.parametrize("epoch", [0, 1])
def test_the_last_checkpoint_is_there_after_a_failure(tmp_path, epoch):
    with dialects.graft("mmengine"):
        whole = toy.make_runner(tmp_path / "whole", length=3)
        whole.train()
        cut = tmp_path / "cut"
        with pytest.raises(ValueError, match="at the end of an epoch"):
            toy.make_runner(cut, FailLast(epoch), length=3).train()
        pointer = cut / "last_checkpoint"
        assert toy.files_in(cut) == [f"epoch_{number}.pth" for number in range(1, epoch + 1)]
        if epoch:
            assert pointer.read_text() == str(cut / "epoch_1.pth")
        else:
            assert not pointer.exists()
        resumed = toy.make_runner(cut, length=3, resume=True)
        resumed.train()
    assert pointer.read_text() == str(cut / "epoch_3.pth")
    weights = toy.weights_of(whole)
    assert all(torch.equal(one, weights[name]) for name, one in toy.weights_of(resumed).items())


def test_a_file_without_the_optimizer_is_named_as_the_last_one(tmp_path):
    checkpoint = {"save_optimizer": False, "save_best": "auto", "rule": "less"}
    with dialects.graft("mmengine"):
        toy.make_runner(tmp_path, length=2, checkpoint=checkpoint).train()
    assert (tmp_path / "last_checkpoint").read_text() == str(tmp_path / "epoch_2.pth")


class Backend:
    def __init__(self):
        self.removed = []

    def isfile(self, path):
        return path == "there.pth"

    def join_path(self, *parts):
        return "/".join(parts)


def test_a_backend_removes_later_and_knows_what_is_coming():
    files = SaveFiles(None)
    backend = LaterRemoval(Backend(), files)
    assert backend.isfile("there.pth") and not backend.isfile("other.pth")
    assert backend.join_path("a", "b") == "a/b"
    backend.remove("there.pth")
    assert files._removals == [(os.path.abspath("there.pth"), None)]
    files._coming.add(os.path.abspath("other.pth"))
    assert backend.isfile("other.pth")
