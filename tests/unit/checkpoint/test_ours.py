"""What a stranger's index lists is deleted only if it is a checkpoint of ours."""

import json
import logging
import os
import shutil
import uuid
import zipfile

import pytest
import torch
from tests.tiny import make_trainer

from hookloop import Hook, Save
from hookloop.checkpoint.store.ours import is_checkpoint_file, is_ours
from hookloop.checkpoint.store.storage import LocalStorage, open_storage
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.hooks import SaveCheckpoint, WriteMetrics


def train(run_dir, epochs=2, **options):
    hooks = [SaveCheckpoint(keep=2, directory=options.pop("directory", None)), WriteMetrics()]
    trainer = make_trainer(hooks=hooks, run_dir=run_dir, max_epochs=epochs, **options)
    trainer.train()
    return trainer


def list_as_checkpoint(place, name, size, iteration=1):
    """Do what a stranger does: list a file as an old checkpoint of the hook that saves."""
    storage = open_storage(place)
    with storage.open("checkpoints.json") as file:
        index = json.loads(file.read())
    entry = {**index["checkpoints"][0], "name": name, "iter": iteration, "size": size}
    index["checkpoints"].insert(0, entry)
    data = json.dumps(index).encode()
    storage.write("checkpoints.json", lambda file: file.write(data))


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path):
    return str(tmp_path / "disk") if request.param == "local" else f"memory://{uuid.uuid4().hex}"


def thesis(path):
    path.write_text("all my work")


def archive(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("thesis/data.pkl", "all my work")


def weights(path):
    torch.save({"model": torch.ones(3)}, path)


def link(path):
    far = path.parent.parent / "far.pth"
    shutil.copy(path.parent / "epoch_2.pth", far)
    path.symlink_to(far)


def folder(path):
    path.mkdir()
    (path / "thesis.tex").write_text("all my work")
    (path / "manifest.json").write_text("{}")
    (path / ".metadata").write_text("")


@pytest.mark.parametrize("make", [thesis, archive, weights, link, folder])
def test_a_resume_deletes_nothing_that_is_not_a_checkpoint(tmp_path, make, caplog):
    train(tmp_path / "run")
    mine = tmp_path / "run/thesis.tex"
    make(mine)
    list_as_checkpoint(tmp_path / "run", mine.name, 11)
    caplog.set_level(logging.WARNING)
    train(tmp_path / "run", epochs=4, resume=True)
    assert os.path.lexists(mine)
    assert "is not one of hookloop's, so it is not deleted" in caplog.text
    assert mine.name not in CheckpointStore(tmp_path / "run").index.entries
    kept = {path.name for path in (tmp_path / "run").glob("*.pth")}
    assert kept == {"epoch_3.pth", "epoch_4.pth"}


def test_a_copy_of_a_checkpoint_under_another_name_is_not_deleted(tmp_path, caplog):
    train(tmp_path / "run")
    shutil.copy(tmp_path / "run/epoch_1.pth", tmp_path / "run/mine.pth")
    list_as_checkpoint(tmp_path / "run", "mine.pth", (tmp_path / "run/mine.pth").stat().st_size)
    caplog.set_level(logging.WARNING)
    train(tmp_path / "run", epochs=4, resume=True)
    assert (tmp_path / "run/mine.pth").exists()
    assert "mine.pth' is listed as a checkpoint" in caplog.text


def test_a_hook_deletes_after_a_resume_what_it_has_named_itself(tmp_path, caplog):
    class Keep(Hook):
        def after_epoch(self, run):
            run.save(Save(f"phase{run.progress.epoch}.pth", owner=self.name, keep=2))

    caplog.set_level(logging.WARNING)
    for epochs in (2, 4):
        make_trainer(hooks=[Keep()], run_dir=tmp_path, max_epochs=epochs, resume="auto").train()
    assert {path.name for path in tmp_path.glob("*.pth")} == {"phase3.pth", "phase4.pth"}
    assert not caplog.records


def test_a_store_elsewhere_keeps_what_is_not_a_checkpoint(tmp_path, place):
    train(tmp_path / "run", directory=place)
    storage = open_storage(f"{place}/run")
    storage.write("thesis.tex", lambda file: file.write(b"all my work"))
    list_as_checkpoint(f"{place}/run", "thesis.tex", 11)
    train(tmp_path / "run", epochs=3, resume=True, directory=place)
    assert "thesis.tex" in storage.names() and "epoch_1.pth" not in storage.names()


def test_a_full_disk_does_not_delete_it_either(tmp_path, monkeypatch):
    train(tmp_path / "run")
    (tmp_path / "run/thesis.tex").write_text("all my work")
    list_as_checkpoint(tmp_path / "run", "thesis.tex", 11)
    free = [0, 0, 0]
    real = LocalStorage.free_bytes
    monkeypatch.setattr(LocalStorage, "free_bytes", lambda self: free.pop() if free else real(self))
    train(tmp_path / "run", epochs=3, resume=True)
    assert (tmp_path / "run/thesis.tex").read_text() == "all my work"


def test_leftovers_are_ours_by_their_whole_name(tmp_path):
    storage = LocalStorage(tmp_path)
    mine = [".thesis.tmp", ".thesis.tex.tmp", ".staged", ".thesis.tex.replaced"]
    ours = [".epoch_1.pth.staged", ".summary.12345.tmp.json", ".run.0123456789abcdef.tmp"]
    for name in (*mine, *ours):
        (tmp_path / name).write_text("text")
    assert set(storage.clean()) == set(ours)
    assert {path.name for path in tmp_path.iterdir()} == set(mine)


def test_checkpoints_of_ours_are_known_by_what_is_in_them(tmp_path, place):
    train(tmp_path / "run", directory=place)
    storage = open_storage(f"{place}/run")
    assert is_ours(storage, "epoch_2.pth")
    assert not is_ours(storage, "checkpoints.json") and not is_ours(storage, "../run/epoch_2.pth")
    torch.save({"state_dict": {}, "meta": {}}, tmp_path / "mmengine.pth")
    assert is_checkpoint_file(tmp_path / "mmengine.pth", ("state_dict", "meta"))
    assert not is_checkpoint_file(tmp_path / "mmengine.pth")
    assert not is_checkpoint_file(tmp_path / "run/summary.json")
