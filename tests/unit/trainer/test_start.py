import base64
import json
import logging
import shutil
import uuid

import pytest
from tests.names import epoch_file
from tests.tiny import make_trainer, weights

from hookloop.checkpoint.state.pretrained import Pretrained
from hookloop.checkpoint.store.store import CheckpointStore
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


def test_a_directory_that_holds_a_run_is_rejected(tmp_path):
    train(tmp_path / "run")
    with pytest.raises(RunExistsError):
        Start(tmp_path / "run").open({})


def test_what_is_not_there_is_rejected_at_once(tmp_path):
    with pytest.raises(CheckpointError, match="resume=True.*run_dir="):
        Start(resume=True)
    with pytest.raises(CheckpointError, match="resume: '.*nothing' does not exist"):
        Start(resume=tmp_path / "nothing")
    with pytest.raises(CheckpointError, match="load_from: there is no checkpoint"):
        Start(load_from=tmp_path / "nothing.pth")
    assert isinstance(Start(load_from="memory://x/y.pth").weights, Pretrained)


def test_a_run_without_a_checkpoint_starts_from_the_beginning_and_says_so(tmp_path, caplog):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.yaml").write_text("seed: 1\n")  # Killed before its first checkpoint.
    assert Start(tmp_path / "run", resume=True).take_checkpoint() is None
    assert "has no checkpoint yet: the run starts from the beginning." in caplog.text


def test_a_mistyped_directory_does_not_begin_from_zero(tmp_path):
    train(tmp_path / "baseline")
    with pytest.raises(CheckpointError, match="'baseline'.*'auto'"):
        Start(tmp_path / "basline", resume=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match="holds no run to resume"):
        Start(tmp_path / "empty", resume=True)
    with pytest.raises(CheckpointError, match="'memory://nowhere'"):
        Start(resume="memory://nowhere").take_checkpoint()
    assert not (tmp_path / "basline").exists()


def test_auto_begins_and_then_continues(tmp_path):
    whole = train(tmp_path / "whole", epochs=3)
    (tmp_path / "run").mkdir()  # A job script may have made it.
    assert train(tmp_path / "run", resume="auto", epochs=1).run.progress.iter == 3
    resumed = train(tmp_path / "run", resume="auto", epochs=3)
    ours, theirs = weights(resumed.run.model), weights(whole.run.model)
    assert all((ours[name] == theirs[name]).all() for name in theirs)


@pytest.mark.parametrize("run_dir", [None, "runs/{time}_mine"])
def test_auto_needs_a_directory_that_a_second_start_finds_again(run_dir):
    with pytest.raises(CheckpointError, match="resume='auto'.*run_dir="):
        Start(run_dir, resume="auto")


def test_a_single_checkpoint_is_continued_in_its_directory(tmp_path):
    train(tmp_path / "run", epochs=3, keep=None)
    start = Start(resume=tmp_path / f"run/{epoch_file(1)}")
    assert start.open({}) == tmp_path / "run"
    label, checkpoint = start.take_checkpoint()
    assert (label, checkpoint["progress"]["epoch"]) == (str(tmp_path / f"run/{epoch_file(1)}"), 1)
    assert start.take_checkpoint() is None  # Only once.


def test_a_damaged_checkpoint_that_was_asked_for_is_rejected(tmp_path):
    train(tmp_path / "run")
    path = tmp_path / f"run/{epoch_file(2)}"
    data = bytearray(path.read_bytes())
    place = data.index(b"progress")
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="data.pkl' has changed"):
        Start(resume=path).take_checkpoint()


def test_what_a_killed_process_left_is_cleaned_when_training_continues(tmp_path):
    train(tmp_path / "run")
    (tmp_path / f"run/.{epoch_file(3)}.staged").write_bytes(b"half")
    start = Start(tmp_path / "run", resume=True)
    start.open({}, trains=False)  # It may be written to just now.
    assert (tmp_path / f"run/.{epoch_file(3)}.staged").exists()
    start.open({})
    start.leave()
    assert not list((tmp_path / "run").glob(".*"))


def test_what_was_left_half_written_elsewhere_is_cleaned_too(tmp_path):
    train(tmp_path / "run", directory=tmp_path / "big")
    (tmp_path / f"big/run/.{epoch_file(3)}.staged").write_bytes(b"half")
    train(tmp_path / "run", resume=True, directory=tmp_path / "big")
    assert not list((tmp_path / "big/run").glob(".*"))


def test_a_directory_that_cannot_be_made_is_rejected_in_our_words(tmp_path):
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
def test_checkpoints_kept_elsewhere_are_found_again(tmp_path, kind):
    elsewhere = {
        "local": str(tmp_path / "big_disk"),
        "relative": "big_disk",
        "memory": f"memory://{uuid.uuid4().hex}",
    }[kind]
    train(tmp_path / "run", directory=elsewhere)
    assert not list((tmp_path / "run").glob("*.pth"))
    stores = [f"{elsewhere}/run"]
    label, checkpoint = Start(tmp_path / "run", resume=True).take_checkpoint(stores)
    assert label == f"{elsewhere}/run/{epoch_file(2)}"
    assert checkpoint["progress"]["epoch"] == 2


def test_two_runs_do_not_mix_in_one_directory_elsewhere(tmp_path):
    for name, epochs in (("one", 2), ("two", 1)):
        train(tmp_path / name, directory=tmp_path / "disk", epochs=epochs)
    assert {path.parent.name for path in (tmp_path / "disk").rglob(epoch_file(1))} == {"one", "two"}
    _, checkpoint = Start(tmp_path / "one", resume=True).take_checkpoint(
        [str(tmp_path / "disk/one")]
    )
    assert checkpoint["progress"]["epoch"] == 2


def test_if_the_place_elsewhere_is_gone_it_is_an_error_and_no_new_beginning(tmp_path):
    train(tmp_path / "run", directory=tmp_path / "disk")
    shutil.rmtree(tmp_path / "disk")
    with pytest.raises(CheckpointError, match=r"disk/run/epoch_2.pth' is missing"):
        Start(tmp_path / "run", resume=True).take_checkpoint([str(tmp_path / "disk/run")])


def test_if_the_place_elsewhere_is_damaged_those_beside_the_run_are_taken(tmp_path, caplog):
    hooks = {"here": SaveCheckpoint(), "there": SaveCheckpoint(directory=tmp_path / "disk")}
    make_trainer(hooks=hooks, run_dir=tmp_path / "run", max_epochs=2).train()
    # Either store may have been the last to finish; here it is the one elsewhere.
    (tmp_path / "run" / "last_checkpoint").write_text(f"{tmp_path}/disk/run/{epoch_file(2)}\n")
    shutil.rmtree(tmp_path / "disk")
    caplog.set_level(logging.WARNING)
    start = Start(tmp_path / "run", resume=True)
    label, _ = start.take_checkpoint([str(tmp_path / "disk/run")])
    assert label == str(tmp_path / f"run/{epoch_file(2)}")
    assert "is missing" in caplog.text and "instead" in caplog.text


def test_a_url_can_be_resumed_from(tmp_path):
    url = f"memory://{uuid.uuid4().hex}"
    train(tmp_path / "run", directory=url)
    for resume in (f"{url}/run", f"{url}/run/{epoch_file(2)}"):
        trainer = train(tmp_path / f"new{len(resume)}", resume=resume, epochs=3)
        assert trainer.run.progress.iter == 9


HOSTILE = f"reference://::data:application/json;base64,eyJ2ZXJzaW9uIjogMX0=/{epoch_file(9)}"


@pytest.mark.parametrize(
    "pointer",
    [
        HOSTILE,
        f"memory://strange/run/{epoch_file(9)}",
        f"/etc/{epoch_file(9)}",
        f"../x/{epoch_file(9)}",
    ],
)
@pytest.mark.parametrize("stores", [(), ("memory://mine/run",)])
def test_a_pointer_of_a_stranger_opens_nothing(tmp_path, pointer, stores, monkeypatch):
    train(tmp_path / "run")
    (tmp_path / "run/last_checkpoint").write_text(pointer)
    opened = []
    real = CheckpointStore.__init__
    monkeypatch.setattr(
        CheckpointStore,
        "__init__",
        lambda self, place: (opened.append(place), real(self, place))[1],
    )
    with pytest.raises(CheckpointError, match="is not a store of this run, so it is not opened"):
        Start(tmp_path / "run", resume=True).take_checkpoint(stores)
    assert set(opened) <= set(stores)


def test_the_exploit_of_a_template_in_a_url_runs_nothing(tmp_path, monkeypatch):
    """fsspec before 2026.6 rendered this template without a sandbox."""
    trace = tmp_path / "trace"
    code = f"{{{{ cycler.__init__.__globals__.os.system('touch {trace}') }}}}"
    refs = {"version": 1, "templates": {"u": code}, "refs": {f"run/{epoch_file(1)}": ["{{u}}"]}}
    data = base64.b64encode(json.dumps(refs).encode()).decode()
    train(tmp_path / "run")
    url = f"reference://::data:application/json;base64,{data}"
    (tmp_path / "run/last_checkpoint").write_text(f"{url}/run/{epoch_file(1)}")
    monkeypatch.setattr("fsspec.core.url_to_fs", lambda *_: trace.touch())
    with pytest.raises(CheckpointError, match="so it is not opened"):
        train(tmp_path / "run", resume=True)
    with pytest.raises(CheckpointError, match="chained URLs"):  # Not even if the user names it.
        train(tmp_path / "new", resume=f"{url}/run/{epoch_file(1)}")
    assert not trace.exists()


def test_a_run_that_keeps_its_checkpoints_elsewhere_is_resumed_by_its_hook(tmp_path):
    url = f"memory://{uuid.uuid4().hex}"
    train(tmp_path / "run", directory=url)
    trainer = train(tmp_path / "run", resume=True, directory=url, epochs=3)
    assert trainer.run.progress.epoch == 3


def test_a_store_that_was_moved_is_found_where_the_user_says_it_is(tmp_path):
    train(tmp_path / "run", directory=tmp_path / "disk")
    shutil.move(tmp_path / "disk", tmp_path / "disk2")
    trainer = train(tmp_path / "run", resume=True, directory=tmp_path / "disk2", epochs=3)
    assert trainer.run.progress.epoch == 3


def test_a_checkpoint_elsewhere_that_the_user_names_continues_the_run(tmp_path):
    url = f"memory://{uuid.uuid4().hex}"
    train(tmp_path / "run", directory=url)
    trainer = train(tmp_path / "run", resume=f"{url}/run/{epoch_file(2)}", epochs=3)
    assert (trainer.run.dir, trainer.run.progress.epoch) == (tmp_path / "run", 3)
