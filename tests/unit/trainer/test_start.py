import logging
import shutil
import uuid

import pytest
from tests.tiny import make_trainer, weights

from hookloop.checkpoint.weights import Pretrained
from hookloop.errors import CheckpointError, HookloopError, RunExistsError
from hookloop.hooks import SaveCheckpoint
from hookloop.trainer.start import Start


def train(run_dir, *, resume=None, epochs=2, **options):
    hook = SaveCheckpoint(**options)
    trainer = make_trainer(hooks=[hook], run_dir=run_dir, resume=resume, max_epochs=epochs)
    trainer.train()
    return trainer


def test_a_new_run_gets_its_directory_and_config(tmp_path):
    start = Start(tmp_path / "run")
    assert start.open({"seed": 1}) == tmp_path / "run"
    assert (tmp_path / "run/config.yaml").read_text() == "seed: 1\n"
    assert start.take_checkpoint() is None


def test_a_directory_that_holds_a_run_is_refused(tmp_path):
    train(tmp_path / "run")
    with pytest.raises(RunExistsError):
        Start(tmp_path / "run").open({})


def test_what_is_not_there_is_refused_at_once(tmp_path):
    with pytest.raises(CheckpointError, match="resume=True needs run_dir="):
        Start(resume=True)
    with pytest.raises(CheckpointError, match="resume: there is no"):
        Start(resume=tmp_path / "nothing")
    with pytest.raises(CheckpointError, match="load_from: there is no checkpoint"):
        Start(load_from=tmp_path / "nothing.pth")
    assert isinstance(Start(load_from="memory://x/y.pth").weights, Pretrained)


def test_a_run_without_a_checkpoint_starts_from_the_beginning_and_says_so(tmp_path, caplog):
    (tmp_path / "run").mkdir()
    assert Start(tmp_path / "run", resume=True).take_checkpoint() is None
    assert "has no checkpoint yet: the run starts from the beginning." in caplog.text


def test_a_single_checkpoint_is_continued_in_its_directory(tmp_path):
    train(tmp_path / "run", epochs=3, keep=None)
    start = Start(resume=tmp_path / "run/epoch_1.pth")
    assert start.open({}) == tmp_path / "run"
    label, checkpoint = start.take_checkpoint()
    assert (label, checkpoint["progress"]["epoch"]) == (str(tmp_path / "run/epoch_1.pth"), 1)
    assert start.take_checkpoint() is None  # Only once.


def test_a_damaged_checkpoint_that_was_asked_for_is_refused(tmp_path):
    train(tmp_path / "run")
    path = tmp_path / "run/epoch_2.pth"
    data = bytearray(path.read_bytes())
    place = data.index(b"progress")
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="data.pkl' has changed"):
        Start(resume=path).take_checkpoint()


def test_what_a_killed_process_left_is_cleaned_when_training_goes_on(tmp_path):
    train(tmp_path / "run")
    (tmp_path / "run/.epoch_3.pth.staged").write_bytes(b"half")
    start = Start(tmp_path / "run", resume=True)
    start.open({}, trains=False)  # It may be written to just now.
    assert (tmp_path / "run/.epoch_3.pth.staged").exists()
    start.open({})
    start.leave()
    assert not list((tmp_path / "run").glob(".*"))


def test_what_was_left_half_written_elsewhere_is_cleaned_too(tmp_path):
    train(tmp_path / "run", directory=tmp_path / "big")
    (tmp_path / "big/run/.epoch_3.pth.staged").write_bytes(b"half")
    train(tmp_path / "run", resume=True, directory=tmp_path / "big")
    assert not list((tmp_path / "big/run").glob(".*"))


def test_a_directory_that_cannot_be_made_is_refused_in_our_words(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HookloopError, match="cannot be made .Not a directory."):
        Start(tmp_path / "file/run").open({})


@pytest.mark.parametrize("transfer", [shutil.move, shutil.copytree])
def test_a_moved_or_copied_run_is_resumed(tmp_path, transfer):
    whole = train(tmp_path / "whole", epochs=3)
    train(tmp_path / "one")
    transfer(tmp_path / "one", tmp_path / "two")
    resumed = train(tmp_path / "two", resume=True, epochs=3)
    ours, theirs = weights(resumed.run.model), weights(whole.run.model)
    assert all((ours[name] == theirs[name]).all() for name in theirs)


@pytest.mark.parametrize("kind", ["local", "relative", "memory"])
def test_checkpoints_kept_elsewhere_are_found_again(tmp_path, kind, monkeypatch):
    elsewhere = {
        "local": str(tmp_path / "big_disk"),
        "relative": "big_disk",
        "memory": f"memory://{uuid.uuid4().hex}",
    }[kind]
    train(tmp_path / "run", directory=elsewhere)
    assert not list((tmp_path / "run").glob("*.pth"))
    monkeypatch.chdir("/")
    label, checkpoint = Start(tmp_path / "run", resume=True).take_checkpoint()
    assert label.endswith("big_disk/run/epoch_2.pth" if kind != "memory" else "/run/epoch_2.pth")
    assert checkpoint["progress"]["epoch"] == 2


def test_two_runs_do_not_mix_in_one_directory_elsewhere(tmp_path):
    for name, epochs in (("one", 2), ("two", 1)):
        train(tmp_path / name, directory=tmp_path / "disk", epochs=epochs)
    assert {path.parent.name for path in (tmp_path / "disk").rglob("epoch_1.pth")} == {"one", "two"}
    _, checkpoint = Start(tmp_path / "one", resume=True).take_checkpoint()
    assert checkpoint["progress"]["epoch"] == 2


def test_if_the_place_elsewhere_is_gone_it_is_an_error_and_no_new_beginning(tmp_path):
    train(tmp_path / "run", directory=tmp_path / "disk")
    shutil.rmtree(tmp_path / "disk")
    with pytest.raises(CheckpointError, match=r"disk/run/epoch_2.pth' is missing"):
        Start(tmp_path / "run", resume=True).take_checkpoint()


def test_if_the_place_elsewhere_is_damaged_those_beside_the_run_are_taken(tmp_path, caplog):
    hooks = {"here": SaveCheckpoint(), "there": SaveCheckpoint(directory=tmp_path / "disk")}
    make_trainer(hooks=hooks, run_dir=tmp_path / "run", max_epochs=2).train()
    shutil.rmtree(tmp_path / "disk")
    caplog.set_level(logging.WARNING)
    label, _ = Start(tmp_path / "run", resume=True).take_checkpoint()
    assert label == str(tmp_path / "run/epoch_2.pth")
    assert "is missing" in caplog.text and "instead" in caplog.text


def test_a_url_can_be_resumed_from(tmp_path):
    url = f"memory://{uuid.uuid4().hex}"
    train(tmp_path / "run", directory=url)
    for resume in (f"{url}/run", f"{url}/run/epoch_2.pth"):
        trainer = train(tmp_path / f"new{len(resume)}", resume=resume, epochs=3)
        assert trainer.run.progress.iter == 9
