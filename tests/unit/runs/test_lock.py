import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hookloop.errors import RunExistsError
from hookloop.runs.lock import LOCK, RunLock

TAKE = """
import sys
from pathlib import Path
from hookloop.errors import RunExistsError
from hookloop.runs.lock import RunLock
try:
    RunLock(Path(sys.argv[1])).take()
except RunExistsError as error:
    sys.exit(str(error))
"""


def take_elsewhere(directory):
    """Try to take the lock in another process; return why it was rejected."""
    command = [sys.executable, "-c", TAKE, str(directory)]
    return subprocess.run(command, check=False, capture_output=True, text=True).stderr


@pytest.mark.slow
def test_one_process_at_a_time_and_the_other_learns_which(tmp_path):
    lock = RunLock(tmp_path)
    lock.take()
    assert f"is being trained in by process {os.getpid()} on" in take_elsewhere(tmp_path)
    lock.give_back()
    assert not (tmp_path / LOCK).exists()
    assert take_elsewhere(tmp_path) == ""


@pytest.mark.slow
def test_a_process_that_died_holds_nothing_though_a_child_of_it_lives(tmp_path):
    pid = os.fork()
    if pid == 0:
        RunLock(tmp_path).take()
        if os.fork() == 0:
            time.sleep(1)
        os._exit(0)
    os.waitpid(pid, 0)
    assert (tmp_path / LOCK).exists()
    lock = RunLock(tmp_path)
    lock.take()
    lock.give_back()


def test_it_is_taken_once_and_given_back_once(tmp_path):
    lock = RunLock(tmp_path)
    lock.take()
    lock.take()
    lock.give_back()
    lock.give_back()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_went_away_is_no_fault(tmp_path):
    lock = RunLock(tmp_path)
    lock.take()
    (tmp_path / LOCK).unlink()
    lock.give_back()


def test_two_trainings_of_one_process_cannot_have_the_same_directory(tmp_path):
    lock = RunLock(tmp_path)
    lock.take()
    with pytest.raises(RunExistsError, match="is being trained in by this process itself"):
        RunLock(tmp_path).take()
    lock.give_back()
    other = RunLock(tmp_path)
    other.take()
    other.give_back()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_gives_nothing_back(tmp_path):
    lock = RunLock(tmp_path)
    lock.take()
    pid = os.fork()
    if pid == 0:
        lock.give_back()
        os._exit(0)
    os.waitpid(pid, 0)
    assert (tmp_path / LOCK).exists()
    assert f"process {os.getpid()} on" in take_elsewhere(tmp_path)
    lock.give_back()
    assert not (tmp_path / LOCK).exists()


def test_what_a_lock_of_somebody_else_says_is_not_repeated(tmp_path):
    (tmp_path / LOCK).write_bytes(b"process 1 on \x1b[31m")
    lock = RunLock(tmp_path)
    lock.take()
    assert (tmp_path / LOCK).read_text().startswith(f"process {os.getpid()} on ")
    lock.give_back()


def test_a_directory_that_cannot_be_written_any_more_keeps_no_lock(tmp_path, monkeypatch):
    lock = RunLock(tmp_path)
    lock.take()

    def unlink(path, missing_ok=False):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        lock.give_back()
    lock.take()
    lock.give_back()
    assert not list(tmp_path.iterdir())


def test_a_lock_whose_file_is_gone_is_lost(tmp_path):
    lock = RunLock(tmp_path)
    assert not lock.is_lost()
    lock.take()
    assert not lock.is_lost()
    (tmp_path / ".lock").unlink()
    assert lock.is_lost()
    lock.give_back()
