import os
import socket
import sys

import pytest

from hookloop.runs.life import Holder, life_of
from hookloop.runs.lock import LOCK, RunLock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of a directory until the test has ended."""
    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        RunLock(tmp_path).take()
        os.write(ready[1], b"x")
        os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    yield pid
    os.write(done[1], b"x")
    os.waitpid(pid, 0)
    for end in (*ready, *done):
        os.close(end)


def test_a_process_that_holds_the_lock_is_alive(tmp_path, holder):
    life, found = life_of(tmp_path / LOCK)
    assert life == "alive" and (found.pid, found.host) == (holder, socket.gethostname())


def test_a_lock_that_the_system_knows_counts_whatever_it_says(tmp_path, holder):
    (tmp_path / LOCK).write_text("process 7 on a-container")
    assert life_of(tmp_path / LOCK) == ("alive", Holder(7, "a-container"))


@pytest.mark.parametrize("platform", ["freebsd14", "aix"])
def test_where_the_system_cannot_be_asked_the_process_is(tmp_path, holder, monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    assert life_of(tmp_path / LOCK)[0] == "alive"


def test_there_may_be_no_lock(tmp_path):
    assert life_of(tmp_path / LOCK) == ("none", None)


@pytest.mark.parametrize(
    ("text", "holder"),
    [
        (b"process 12 on host", Holder(12, "host")),
        (b"process 12 on host, begun boot/7, file 99\n", Holder(12, "host", "boot/7", 99)),
        (b"process 0 on host", None),
        (b"process -1 on host", None),
        (b"process 12 on two words", None),
        (b"process 12 on host, begun \x1b[31m and more", None),
        (b"\xff\xfe", None),
        (b"", None),
    ],
)
def test_a_lock_is_read_as_it_is_written_or_not_at_all(text, holder):
    assert Holder.read(text) == holder
    if holder is not None:
        assert holder.text.encode() == text.strip()
