"""Which run is which: ids, stores that belong to one run, and what another run was begun with."""

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import torch
from tests.names import iter_file
from tests.tiny import assert_same_bits, make_trainer

from hookloop.checkpoint.choose import choose
from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.hook import Hook
from hookloop.errors import CheckpointError
from hookloop.hooks import SaveCheckpoint, WriteCSV, WriteMetrics
from hookloop.runs.identity import read_identity
from hookloop.runs.layout import RunDir


class Fail(Hook):
    """Ends the run in the middle, as a crash does."""

    def __init__(self, at):
        self.at = at

    def after_train_iter(self, run):
        if run.progress.iter == self.at:
            raise RuntimeError("cut")


def train(run_dir, store=None, epochs=2, hooks=(), **options):
    save = SaveCheckpoint(1, keep=2, directory=store)
    trainer = make_trainer(
        hooks=[save, WriteMetrics(every=1), *hooks], run_dir=run_dir, max_epochs=epochs, **options
    )
    trainer.train()
    return trainer


def start(script, *arguments):
    """Start a process that can import what this file can."""
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", script, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def run_id(run_dir):
    return read_identity(RunDir(run_dir)).run_id


def checkpoints(place):
    return {name for name in CheckpointStore(place).storage.names() if name.endswith(".pth")}


@pytest.fixture(params=["local", "memory"])
def disk(request, tmp_path):
    return str(tmp_path / "disk") if request.param == "local" else f"memory://{uuid.uuid4().hex}"


# --- the id ---


def test_an_id_outlives_resuming_moving_and_copying(tmp_path):
    first = train(tmp_path / "run").run._internals.id
    assert first == run_id(tmp_path / "run")
    assert train(tmp_path / "run", epochs=3, resume=True).run._internals.id == first
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    shutil.move(tmp_path / "run", tmp_path / "moved")
    for name in ("copy", "moved"):
        assert train(tmp_path / name, epochs=4, resume=True).run._internals.id == first
    assert torch.load(tmp_path / f"copy/{iter_file(12)}", weights_only=True)["run_id"] == first


def test_two_runs_differ_in_their_ids_and_in_nothing_that_is_compared(tmp_path):
    one, other = train(tmp_path / "a").run, train(tmp_path / "b").run
    assert one._internals.id != other._internals.id
    pair = [torch.load(tmp_path / name / iter_file(6), weights_only=True) for name in "ab"]
    assert compare(*pair) == []


def test_a_run_without_an_id_gets_one_and_keeps_its_checkpoints(tmp_path, disk):
    train(tmp_path / "run", disk)
    forget(tmp_path / "run", f"{disk}/run")
    assert train(tmp_path / "run", disk, epochs=3, resume=True).run.progress.iter == 9
    assert checkpoints(f"{disk}/run") == {iter_file(8), iter_file(9)}
    assert run_id(tmp_path / "run") is not None


def forget(run_dir, place):
    """Leave what earlier versions left: no id."""
    file = run_dir / "summary.json"
    summary = json.loads(file.read_text())
    del summary["run_id"], summary["parent"]
    file.write_text(json.dumps(summary))
    storage = CheckpointStore(place).storage
    with storage.open("checkpoints.json") as opened:
        index = json.loads(opened.read())
    data = json.dumps({"checkpoints": index["checkpoints"]}).encode()
    storage.write("checkpoints.json", lambda opened: opened.write(data))


def test_a_directory_whose_summary_is_lost_takes_its_id_from_its_store(tmp_path, disk):
    first = train(tmp_path / "run", disk).run._internals.id
    (tmp_path / "run/summary.json").unlink()
    again = train(tmp_path / "run", disk, epochs=3, resume=True)
    assert (again.run._internals.id, again.run.progress.iter) == (first, 9)


# --- a store belongs to one run ---


def test_another_run_of_the_same_name_is_rejected_before_training(tmp_path, disk):
    first = train(tmp_path / "one/run", disk, epochs=2)
    before = checkpoints(f"{disk}/run")
    with pytest.raises(CheckpointError, match=f"belong to run {first.run._internals.id}"):
        train(tmp_path / "two/run", disk, epochs=1)
    assert checkpoints(f"{disk}/run") == before
    again = train(tmp_path / "one/run", disk, epochs=3, resume="auto")
    assert again.run.progress.iter == 9


def test_a_run_whose_store_is_another_ones_by_now_does_not_continue_that(tmp_path, disk):
    """As two runs of an earlier version left it: both have saved in one store."""
    train(tmp_path / "one/run", disk)
    forget(tmp_path / "one/run", f"{disk}/run")
    CheckpointStore(f"{disk}/run").storage.remove("checkpoints.json")
    train(tmp_path / "two/run", disk, epochs=1)
    with pytest.raises(CheckpointError, match="not to the run in"):
        train(tmp_path / "one/run", disk, epochs=3, resume=True)
    with pytest.raises(CheckpointError, match="belong"):
        choose(tmp_path / "one/run", "last", [f"{disk}/run"])


@pytest.mark.slow
def test_two_processes_that_start_at_once_do_not_share_a_store(tmp_path):
    script = """
import sys
from tests.tiny import make_trainer
from hookloop.hooks import SaveCheckpoint, WriteMetrics
make_trainer(hooks=[SaveCheckpoint(1, directory=sys.argv[2]), WriteMetrics()], run_dir=sys.argv[1],
             max_epochs=3).train()
"""
    homes = [tmp_path / name / "run" for name in ("one", "two")]
    started = [start(script, home, tmp_path / "disk") for home in homes]
    errors = [process.communicate(timeout=300)[1] for process in started]
    codes = sorted(process.returncode for process in started)
    assert codes == [0, 1]
    assert "belong to run" in "".join(errors)


def test_a_store_that_another_run_took_meanwhile_is_not_written(tmp_path, disk):
    class Take(Hook):
        def before_train(self, run):
            storage = CheckpointStore(f"{disk}/run").storage
            data = json.dumps({"run_id": "other", "checkpoints": []}).encode()
            storage.write("checkpoints.json", lambda opened: opened.write(data))

    trainer = train(tmp_path / "run", disk, hooks=[Take()])
    assert "belong to run other" in trainer.run.outcome.problem
    assert checkpoints(f"{disk}/run") == set()


def test_a_moved_run_keeps_its_store_and_a_copy_beside_it_is_rejected(tmp_path, disk):
    train(tmp_path / "one/run", disk)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with pytest.raises(CheckpointError, match="is a copy of"):
        train(tmp_path / "two/run", disk, epochs=3, resume=True)
    shutil.rmtree(tmp_path / "two")
    shutil.move(tmp_path / "one", tmp_path / "moved")
    assert train(tmp_path / "moved/run", disk, epochs=3, resume=True).run.progress.iter == 9


def test_a_copy_with_a_store_of_its_own_is_trained_further_beside_its_origin(tmp_path):
    for name in ("beside", "inside"):
        store = "disk" if name == "beside" else "run/disk"
        train(tmp_path / name / "run", tmp_path / name / store)
        shutil.copytree(tmp_path / name, tmp_path / f"{name}-copy")
        for home, epochs in ((f"{name}-copy", 4), (name, 3)):
            place = tmp_path / home / store
            again = train(tmp_path / home / "run", place, epochs=epochs, resume=True)
            assert again.run.progress.iter == 3 * epochs
        assert checkpoints(tmp_path / name / store / "run") == {iter_file(8), iter_file(9)}


def test_a_new_run_deletes_nothing_of_an_earlier_version(tmp_path, disk):
    train(tmp_path / "one/run", disk)
    forget(tmp_path / "one/run", f"{disk}/run")
    before = checkpoints(f"{disk}/run")
    for options in ({}, {"resume": train(tmp_path / "other").run.dir / iter_file(6)}):
        with pytest.raises(CheckpointError, match="earlier version"):
            train(tmp_path / "two/run", disk, epochs=3, **options)
        shutil.rmtree(tmp_path / "two")
    assert checkpoints(f"{disk}/run") == before
    assert train(tmp_path / "two/run", disk, epochs=3, resume=f"{disk}/run").run.progress.iter == 9


def test_a_run_whose_directory_was_lost_is_continued_from_its_store(tmp_path, disk):
    first = train(tmp_path / "one/run", disk).run._internals.id
    shutil.rmtree(tmp_path / "one")
    with pytest.raises(CheckpointError, match="is not there any more"):
        train(tmp_path / "new/run", disk, epochs=3)
    shutil.rmtree(tmp_path / "new")
    again = train(tmp_path / "new/run", disk, epochs=3, resume=f"{disk}/run")
    assert (again.run._internals.id, again.run.progress.iter, again.run._internals.parent) == (
        first,
        9,
        None,
    )


def test_best_checkpoints_of_another_run_are_left_out(tmp_path):
    disk = tmp_path / "disk"
    save = SaveCheckpoint(1, directory=disk, best="val/loss")
    data = make_trainer().run.train_data.data
    one = make_trainer(hooks=[save, WriteMetrics()], run_dir=tmp_path / "a/run", val_data=data)
    one.train()
    train(tmp_path / "b/run")
    chosen = choose(tmp_path / "b/run", None, [str(disk / "run")])
    assert (chosen.path, chosen.run_id) == (
        str(tmp_path / f"b/run/{iter_file(6)}"),
        run_id(tmp_path / "b/run"),
    )
    assert choose(tmp_path / "a/run", None, [str(disk / "run")]).run_id == one.run._internals.id


# --- the run that another one continues ---


def cut_child(tmp_path, **options):
    """A run that begins with another one's checkpoint, and is cut before its first save."""
    train(tmp_path / "parent", epochs=2)
    with pytest.raises(RuntimeError, match="cut"):
        child(
            tmp_path,
            epochs=4,
            hooks=[Fail(8)],
            resume=tmp_path / f"parent/{iter_file(6)}",
            **options,
        )


def child(tmp_path, epochs=4, hooks=(), **options):
    save = SaveCheckpoint("1 epoch", last=False, begin=3)
    trainer = make_trainer(
        hooks=[save, WriteMetrics(every=1), WriteCSV(every="1 iter"), *hooks],
        run_dir=tmp_path / "child",
        max_epochs=epochs,
        **options,
    )
    trainer.train()
    return trainer


@pytest.mark.parametrize("resume", [True, "auto"])
def test_a_run_that_is_cut_before_its_first_save_begins_again_with_its_parent(tmp_path, resume):
    cut_child(tmp_path)
    assert checkpoints(tmp_path / "child") == set()
    parent = json.loads((tmp_path / "child/summary.json").read_text())["parent"]
    assert (parent["path"], parent["iter"]) == (f"../parent/{iter_file(6)}", 6)
    assert parent["run_id"] == run_id(tmp_path / "parent") != run_id(tmp_path / "child")
    again = child(tmp_path, resume=resume)
    whole = train(tmp_path / "whole", epochs=4)
    assert_same_bits(again.run.model, whole.run.model)
    lines = (tmp_path / "child/metrics.jsonl").read_text().splitlines()
    iters = [one["iter"] for one in map(json.loads, lines) if one["span"] == "iter"]
    assert iters == [*range(7, 13)]
    rows = (tmp_path / "child/metrics.csv").read_text().splitlines()
    assert len(rows) == len(set(rows)) and len([r for r in rows if ",7," in r]) == 1


@pytest.mark.slow
def test_a_kill_before_the_training_begins_is_noticed_too(tmp_path):
    train(tmp_path / "parent")
    script = """
import os, signal, sys
from tests.tiny import make_trainer
from hookloop.engine.hook import Hook
from hookloop.hooks import SaveCheckpoint, WriteMetrics
class Kill(Hook):
    def before_run(self, run):
        os.kill(os.getpid(), signal.SIGKILL)
make_trainer(hooks=[SaveCheckpoint(1), WriteMetrics(), Kill()], max_epochs=4,
             run_dir=sys.argv[1], resume=sys.argv[2]).train()
"""
    killed = start(script, tmp_path / "child", tmp_path / "parent")
    killed.communicate(timeout=300)
    assert killed.returncode == -9
    with pytest.raises(CheckpointError, match="cut before that was loaded"):
        train(tmp_path / "child", epochs=4, resume="auto")
    named = train(tmp_path / "child", epochs=4, resume=tmp_path / "parent")
    assert named.run.progress.iter == 12
    assert named.run._internals.parent.run_id == run_id(tmp_path / "parent")


def test_a_parent_that_was_moved_is_found_by_its_id(tmp_path):
    cut_child(tmp_path)
    shutil.move(tmp_path / "parent", tmp_path / "renamed")
    assert child(tmp_path, resume=True).run._internals.parent.path == f"../renamed/{iter_file(6)}"


@pytest.mark.parametrize("how", ["gone", "changed", "elsewhere"])
def test_without_its_parent_a_run_does_not_begin_at_0(tmp_path, how):
    cut_child(tmp_path)
    file = tmp_path / f"parent/{iter_file(6)}"
    if how == "gone":
        shutil.rmtree(tmp_path / "parent")
    elif how == "changed":
        shutil.copy(tmp_path / f"parent/{iter_file(5)}", file)
    else:
        summary = tmp_path / "child/summary.json"
        content = json.loads(summary.read_text())
        content["parent"]["path"] = os.path.relpath(f"/etc/{iter_file(6)}", tmp_path / "child")
        summary.write_text(json.dumps(content))
    told = {"gone": "not there any more", "changed": "has changed", "elsewhere": "may not lead"}
    with pytest.raises(CheckpointError, match=told[how]):
        child(tmp_path, resume=True)
    if how == "gone":  # It was put somewhere else, and the user says where.
        train(tmp_path / "far/parent", epochs=2)
        named = child(tmp_path, resume=tmp_path / f"far/parent/{iter_file(6)}")
        assert named.run.progress.iter == 12


def test_a_child_with_a_checkpoint_of_its_own_needs_no_parent(tmp_path):
    train(tmp_path / "parent")
    train(tmp_path / "child", epochs=3, resume=tmp_path / "parent")
    shutil.rmtree(tmp_path / "parent")
    again = train(tmp_path / "child", epochs=4, resume=True)
    assert (again.run.progress.iter, again.run._internals.parent.iter) == (12, 6)


def test_a_failed_start_from_a_parent_is_recorded_as_failed(tmp_path):
    train(tmp_path / "parent")
    with pytest.raises(CheckpointError):
        train(tmp_path / "child", model=torch.nn.Linear(4, 1), resume=tmp_path / "parent")
    assert json.loads((tmp_path / "child/summary.json").read_text())["status"] == "failed"


def test_a_folder_that_runs_share_gives_no_run_another_ones_checkpoint(tmp_path):
    class Shared(SaveCheckpoint):
        """As ClassyVision's hook does: the folder is not named after the run."""

        def stores(self, run_dir):
            return (str(tmp_path / "all"),)

        def _location(self, run):
            return str(tmp_path / "all")

    def run(name, epochs, **options):
        trainer = make_trainer(
            hooks=[Shared(1, keep=None), WriteMetrics()],
            run_dir=tmp_path / name,
            max_epochs=epochs,
            **options,
        )
        trainer.train()
        return trainer

    run("one", 1)
    run("two", 2)
    with pytest.raises(CheckpointError, match="was saved by run"):
        run("one", 3, resume=True)
    assert run("two", 3, resume=True).run.progress.iter == 9
