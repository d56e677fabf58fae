import pytest
from tests.names import epoch_file

from hookloop.errors import HookloopError
from hookloop.runs.layout import RunDir
from hookloop.runs.lock import RunLock
from hookloop.runs.removal import plan_removal, remove_run


@pytest.fixture
def run(tmp_path):
    made = RunDir.create(tmp_path / "run")
    made.write_summary({"status": "failed"})
    (made.path / "images").mkdir()
    (made.path / "images" / "one.png").write_bytes(b"x" * 1000)
    return made


def test_a_run_is_deleted_and_links_in_it_are_not_followed(run, tmp_path):
    outside = tmp_path / "data"
    outside.mkdir()
    (outside / "file").write_text("kept")
    (run.path / "link").symlink_to(outside)
    (run.path / "images" / "second").hardlink_to(outside / "file")
    plan = plan_removal(run.path)
    assert plan.status == "failed"
    assert plan.size == 1000 + run.summary_file.stat().st_size
    remove_run(run.path)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert (outside / "file").read_text() == "kept"


def test_only_runs_are_deleted(run, tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("a: 1")
    with pytest.raises(HookloopError, match="is not the directory of a run"):
        plan_removal(tmp_path)
    (tmp_path / "link").symlink_to(run.path)
    with pytest.raises(HookloopError, match="is a symbolic link"):
        plan_removal(tmp_path / "link")
    monkeypatch.chdir(run.path / "images")
    with pytest.raises(HookloopError, match="the working directory is in it"):
        plan_removal(run.path)
    monkeypatch.chdir(tmp_path)
    RunDir.create(run.path / "inner").write_summary({})
    with pytest.raises(HookloopError, match="has other runs in it"):
        plan_removal(run.path)
    remove_run(run.path / "inner")
    (run.path / ".git").mkdir()
    with pytest.raises(HookloopError, match="is a repository"):
        plan_removal(run.path)


def test_a_live_run_is_not_deleted(run):
    lock = RunLock(run.path)
    lock.take()
    try:
        with pytest.raises(HookloopError, match="may be alive: running"):
            plan_removal(run.path)
        with pytest.raises(HookloopError, match="is being trained in"):
            remove_run(run.path)
    finally:
        lock.give_back()
    assert run.summary_file.is_file()


def test_a_run_of_another_host_is_not_deleted_while_nobody_knows(run):
    (run.path / ".lock").write_text("process 7 on elsewhere, begun x")
    run.write_summary({"status": "running"})
    with pytest.raises(HookloopError, match="may be alive"):
        plan_removal(run.path)


def test_other_stores_are_named(run):
    run.last_checkpoint_file.write_text(f"s3://bucket/run/{epoch_file(1)}")
    run.write_config({"hooks": [{"type": "SaveCheckpoint", "directory": "s3://bucket"}]})
    assert plan_removal(run.path).elsewhere == ("s3://bucket/run", "s3://bucket")
