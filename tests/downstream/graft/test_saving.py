"""Which files there are, and that an old one goes only when its successor is durable."""

import os

from tests.downstream.graft import toy

from hookloop import dialects
from hookloop.dialects.mmengine.graft.saving import LaterRemoval, SaveFiles


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
