import subprocess

import pytest

from hookloop.runs.git import Repository, git


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(name, "me")
    for name in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "me@example.org")
    (tmp_path / "train.py").write_text("print(1)\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    return tmp_path


def state(root):
    asked = Repository(root)
    assert asked.is_known(30.0)
    return asked.state()


def test_the_commit_and_whether_files_have_changed(repository):
    commit = git(repository, "rev-parse", "HEAD").strip()
    (repository / "untracked.txt").write_text("not of the project")
    assert state(repository) == {"commit": commit, "dirty": False}
    (repository / "train.py").write_text("print(2)\n")
    assert state(repository) == {"commit": commit, "dirty": True}


def test_outside_of_a_repository_nothing_is_known(tmp_path):
    assert state(tmp_path) == {}
    assert git(tmp_path, "log") == ""


def test_without_git_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert state(tmp_path) == {}
    assert git(tmp_path, "log") == ""


def test_a_git_that_has_not_ended_is_ended(tmp_path, monkeypatch):
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    asked = Repository(tmp_path)
    assert not asked.is_known(0.01)
    assert asked.state() == {}
