"""Launchers of several hosts agree, notice each other's end, and never wait without a limit."""

import signal
import sys
from pathlib import Path

import pytest
from tests.integration.hosts import Hosts, namespaces, several
from tests.ranks import free_port

from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.store.store import CheckpointStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="kills what it finds in /proc"),
]

SHORT = "parallel.timeout=20"
"""Where ranks shall miss each other; not shorter, because they also start within it."""


@pytest.fixture
def hosts(tmp_path):
    """Two hosts that are both this machine, at addresses of its own."""
    with several(tmp_path, f"127.0.0.1:{free_port()}", (), ()) as both:
        yield both


@pytest.fixture
def linked(tmp_path):
    """Two hosts with a network of their own."""
    with namespaces(tmp_path) as both:
        yield both


def assert_equal(hosts: Hosts) -> None:
    """Compare the last checkpoint with that of one host, bit by bit."""
    found = [CheckpointStore(Path(hosts.folder) / name).newest() for name in ("run", "alone")]
    assert None not in found
    states = [state for _, state in found]
    assert states[0]["progress"]["iter"] == 18
    assert compare(*states) == []


def test_a_killed_rank_starts_all_hosts_again(hosts):
    options = ("--restarts", "1", "hooks.disturb.kill_at=8")
    both = [hosts.train(host, *options) for host in (0, 1)]
    hosts.alone()
    assert [one.end() for one in both] == [0, 0], "\n".join(one.text for one in both)
    texts = "\n".join(one.text for one in both)
    assert texts.count("rank 1 was killed by SIGKILL") == 1
    assert texts.count("All ranks are started again; restarts left: 0.") == 2
    assert_equal(hosts)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_host_that_comes_back_is_part_of_the_next_attempt(hosts, lost):
    options = ("--restarts", "1", "hooks.disturb.wait_at=8")
    first = hosts.train(0, *options)
    hosts.until(lambda: is_heard(hosts.place))  # It keeps the register, as with real addresses.
    both = [first, hosts.train(1, *options)]
    hosts.until_ranks_wait()
    both[lost].process.send_signal(signal.SIGKILL)  # Its ranks end with it.
    both[lost].end()
    hosts.let_continue()
    hosts.until(lambda: "started again" in both[1 - lost].text)
    returned = hosts.train(lost, *options)
    assert [returned.end(), both[1 - lost].end()] == [0, 0], both[1 - lost].text
    assert both[1 - lost].text.count("was lost: ") == 1  # It was closed, or reset.
    hosts.alone()
    assert_equal(hosts)


@pytest.mark.long
def test_the_host_that_is_left_continues_until_the_other_is_back(hosts):
    """With logical ranks, to the same bits; the iteration in which it grows is not repeated."""
    options = ("--restarts", "1", "parallel.logical=2")
    own = ("hooks.disturb.wait_at=8", "hooks.disturb.alone_at=12")
    first = hosts.train(0, *options, *own, nodes="1..2")
    hosts.until(lambda: is_heard(hosts.place))
    second = hosts.train(1, *options, *own, nodes="1..2")
    hosts.until_ranks_wait()
    second.process.send_signal(signal.SIGKILL)
    second.end()
    hosts.let_continue()
    hosts.until((hosts.folder / "is-alone").exists)
    returned = hosts.train(1, *options, *own, nodes="1..2")
    assert [first.end(), returned.end()] == [0, 0], first.text + returned.text
    assert first.text.count("was lost: ") == 1
    assert "All ranks are started again, on all nodes that are there, 1 rank here." in first.text
    hosts.alone("parallel.logical=2", ranks=1)
    assert_equal(hosts)


@pytest.mark.parametrize("without", [pytest.param(0, marks=pytest.mark.long), 1])
def test_a_host_without_restarts_ends_the_others_too(hosts, without):
    options = ("--patience", "1 min", "hooks.disturb.kill_at=8", "--restarts")
    counts = ["3", "3"]
    counts[without] = "0"
    both = [hosts.train(host, *options, count) for host, count in zip((0, 1), counts, strict=True)]
    assert [one.end() for one in both] == [1, 1]
    assert " has ended: " in both[1 - without].text


def test_a_launcher_gives_up_waiting(hosts):
    waiting = hosts.train(0, "--patience", "2", "--restarts", "3")
    assert waiting.end() == 1
    assert "gave up after waiting 2 s for 1 of 2 launchers" in waiting.text


@pytest.mark.parametrize("silent", [0, 1])
def test_a_host_that_answers_nothing_ends_the_other(hosts, silent):
    """A stopped host is to the other one what a cut network is: connected, and silent."""
    options = ("hooks.disturb.wait_at=8", SHORT)
    first = hosts.train(0, *options)
    hosts.until(lambda: is_heard(hosts.place))
    both = [first, hosts.train(1, *options)]
    hosts.until_ranks_wait()
    both[silent].send(signal.SIGSTOP)
    hosts.let_continue()
    try:
        assert both[1 - silent].end() == 1
        assert "in time after iteration 9" in both[1 - silent].text
    finally:
        both[silent].send(signal.SIGKILL)


@pytest.mark.parametrize("host", ["host0", pytest.param("[fd77::1]", marks=pytest.mark.long)])
def test_hosts_with_a_network_train_as_one_host_does(linked, host):
    """By a name that leads to 127.0.1.1 on its own host, which nobody else can reach."""
    linked.place = linked.place.replace("10.199.77.1", host)
    both = [linked.train(host, ranks=2) for host in (0, 1)]
    linked.alone(ranks=4)
    assert [one.end() for one in both] == [0, 0], "\n".join(one.text for one in both)
    # Nothing about sockets, though none of the hosts has a name in DNS.
    assert [len(one.text.splitlines()) for one in both] == [1, 0]
    assert "completed: run" in both[0].text
    assert_equal(linked)


def test_hosts_whose_network_is_cut_both_end(linked):
    both = [linked.train(host, "hooks.disturb.wait_at=8", SHORT) for host in (0, 1)]
    linked.until_ranks_wait()
    linked.cut()
    linked.let_continue()
    assert [one.end() for one in both] == [1, 1]
    assert "rank 1 did not come in time after iteration 9" in both[0].text
    assert "no answer from another rank in time after iteration 9" in both[1].text


def is_heard(place: str) -> bool:
    """Return whether somebody listens at an address."""
    port, listens = int(place.rpartition(":")[2]), "0A"
    rows = [
        line.split()
        for kind in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()
    ]
    return any(row[1].endswith(f":{port:04X}") and row[3] == listens for row in rows)
