"""The runs of some directories, kept until one of their files changes."""

import json
import shutil
import socket
import subprocess
from pathlib import Path
from threading import Event
from time import process_time

import pytest

from board_runs import SUMMARY, record, write_run
from hookloop.runs.life import Holder, _process
from hookloop.runs.lock import LOCK
from hookloop_board import collection as module
from hookloop_board.collection import Collection, NotFound
from hookloop_board.run_view import ListAnswer


def test_runs_have_ids_that_stay(tmp_path):
    for name in ("a", "deep/b"):
        write_run(tmp_path / name)
    first, second = Collection([tmp_path]).entries(), Collection([tmp_path]).entries()
    assert list(first) == list(second) and all(len(one) == 16 for one in first)
    assert {one.summary.name for one in first.values()} == {"a", "deep/b"}


def test_a_run_itself_and_the_same_directory_twice(tmp_path):
    write_run(tmp_path / "a")
    (entry,) = Collection([tmp_path / "a", tmp_path, tmp_path]).entries().values()
    assert entry.summary.name == "a"


def test_only_what_has_changed_is_read_again(tmp_path, monkeypatch):
    for name in "abc":
        write_run(tmp_path / name)
    runs = Collection([tmp_path])
    runs.entries()
    read = []
    original = module.summarize_safely
    monkeypatch.setattr(
        module,
        "summarize_safely",
        lambda path, *rest: read.append(path.name) or original(path, *rest),
    )
    runs.entries(fresh=0)
    assert read == []
    (tmp_path / "b" / "summary.json").write_text(json.dumps({**SUMMARY, "status": "failed"}))
    states = {one.summary.name: one.summary.status for one in runs.entries(fresh=0).values()}
    assert read == ["b"] and states["b"] == "failed"


def test_a_run_whose_process_is_gone_turns_dead_without_a_change_of_its_files(tmp_path):
    path = write_run(tmp_path / "a", summary={"status": "running", "ended": None})
    child = subprocess.Popen(["sleep", "60"])
    lock = path / LOCK
    lock.touch()
    holder = Holder(child.pid, socket.gethostname(), _process(child.pid)[1], lock.stat().st_ino)
    lock.write_text(holder.text)
    runs = Collection([tmp_path])
    (entry,) = runs.entries().values()
    assert entry.summary.status == "running"
    child.kill()
    child.wait()
    (entry,) = runs.entries(fresh=0).values()
    assert entry.summary.status == "dead"


def test_new_and_deleted_runs_are_noticed(tmp_path):
    runs = Collection([tmp_path / "later"])
    assert not runs.entries()
    write_run(tmp_path / "later" / "a")
    (number,) = runs.entries(fresh=0)
    assert runs.entry(number).home.name == "a"
    for file in (tmp_path / "later" / "a").iterdir():
        file.unlink()
    (tmp_path / "later" / "a").rmdir()
    runs.entries(fresh=0)
    with pytest.raises(NotFound):
        runs.entry(number)


@pytest.mark.parametrize("number", ["", "../a", "0" * 16, "a\0b", "%2e%2e"])
def test_an_unknown_id_is_not_found(tmp_path, number):
    write_run(tmp_path / "a")
    with pytest.raises(NotFound):
        Collection([tmp_path]).entry(number)


def test_links_to_runs_elsewhere_are_not_runs(tmp_path):
    write_run(tmp_path / "elsewhere" / "a")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "elsewhere" / "a")
    assert not Collection([tmp_path / "runs"]).entries()


def test_a_run_replaced_by_a_link_is_rejected(tmp_path):
    write_run(tmp_path / "elsewhere" / "b")
    write_run(tmp_path / "runs" / "a")
    runs = Collection([tmp_path / "runs"])
    (number,) = runs.entries()
    (tmp_path / "runs" / "a").rename(tmp_path / "moved")
    (tmp_path / "runs" / "a").symlink_to(tmp_path / "elsewhere" / "b")
    with pytest.raises(OSError, match="symbolic link"):
        runs.entry(number)


def test_links_in_a_run_show_nothing_of_their_target(tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({**SUMMARY, "reason": "TOP SECRET"}))
    path = write_run(tmp_path / "runs" / "a")
    (path / "summary.json").unlink()
    (path / "summary.json").symlink_to(secret)
    (entry,) = Collection([tmp_path / "runs"]).entries().values()
    assert entry.summary.status == "unreadable" and "SECRET" not in repr(entry)


def test_few_files_of_metrics_are_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_OPEN", 2)
    for name in "abcd":
        write_run(tmp_path / name, [record(1, loss=1.0)])
    runs = Collection([tmp_path])
    files = [runs.metrics(entry) for entry in runs.entries().values()]
    assert all(one.latest() == {"loss": 1.0} for one in files) and len(runs._files) == 2


def test_a_sweep_that_works_does_not_hide_its_trials(tmp_path):
    write_run(tmp_path / "sweep" / "trial_0000")
    (tmp_path / "sweep" / "sweep.json").write_text("{}")
    (tmp_path / "sweep" / LOCK).touch()
    names = [one.summary.name for one in Collection([tmp_path]).entries().values()]
    assert names == ["sweep/trial_0000"]


def test_a_thousand_runs_are_listed_in_a_second(tmp_path):
    config = Path(__file__).parents[3] / "examples" / "digits" / "config.yaml"
    text = config.read_text()
    for number in range(1000):
        write_run(tmp_path / f"{number:04d}", [record(1, loss=1.0)], config=text + f"x: {number}\n")
    runs = Collection([tmp_path])
    began = process_time()
    assert len(runs.entries()) == 1000
    first = process_time() - began
    began = process_time()
    runs.entries(fresh=0)
    again = process_time() - began
    assert first < 10 and again < first / 2, (first, again)


def test_runs_of_one_name_in_several_directories_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for root in "abc":
        write_run(tmp_path / root / "same")
    write_run(tmp_path / "a" / "other")
    runs = Collection([Path("a"), Path("b"), Path("c")])
    assert {one.name for one in runs.entries().values()} == {"other", "a/same", "b/same", "c/same"}
    names = [run["name"] for run in json.loads(ListAnswer(runs).bytes()[0])["runs"]]
    assert sorted(names) == ["a/same", "b/same", "c/same", "other"]
    for root in "bc":
        shutil.rmtree(tmp_path / root)
    assert {one.name for one in runs.entries(fresh=0).values()} == {"other", "same"}


def test_a_slow_disk_keeps_nobody_waiting(tmp_path, monkeypatch):
    write_run(tmp_path / "a")
    runs = Collection([tmp_path])
    (known,) = runs.entries()
    monkeypatch.setattr(module, "QUICK", -1.0)  # Every look counts as slow.
    monkeypatch.setattr(module, "REST", 0.0)
    go_on, original = Event(), module.find_runs

    def slow(root):
        assert go_on.wait(60)
        return original(root)

    monkeypatch.setattr(module, "find_runs", slow)
    write_run(tmp_path / "b")
    assert list(runs.entries(fresh=0)) == [known]
    assert runs.entry(known).summary.name == "a"
    go_on.set()
    assert len(runs.entries(fresh=0, waits=True)) == 2
