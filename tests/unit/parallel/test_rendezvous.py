"""Launchers meet, agree on an attempt, and learn what became of each other; without ranks."""

import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.ranks import free_port

from hookloop.parallel import rendezvous
from hookloop.parallel.register import Link
from hookloop.parallel.rendezvous import Layout, NotMet, Rendezvous, listen

ELSEWHERE = "192.0.2.254"
"""An address for documentation, which no host has."""


@pytest.fixture
def make():
    """Make launchers that meet at one place; the first of them keeps the register."""
    place, made = f"127.0.0.1:{free_port()}", []

    def launcher(ranks=1, nodes=2, patience=60.0, silence=60.0) -> Rendezvous:
        made.append(Rendezvous(Layout(ranks, nodes, place, patience, silence)))
        return made[-1]

    yield launcher
    for one in reversed(made):
        one.leave("the test is over")


def meet(*launchers, attempts=None):
    """Let launchers meet, the first of them as the first; return their places."""
    numbers = attempts or [0] * len(launchers)
    with ThreadPoolExecutor(len(launchers)) as pool:
        places = []
        for one, attempt in zip(launchers, numbers, strict=True):
            places.append(pool.submit(one.meet, attempt))
            until_connected(one, places[-1])
        return [place.result(60) for place in places]


def until_connected(launcher, meeting):
    while launcher._link is None and not meeting.done():
        time.sleep(0.01)


def news(launcher):
    """Wait for news."""
    end = time.monotonic() + 60
    while (heard := launcher.news()) is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    return heard


def test_ranks_are_numbered_over_all_nodes(make):
    places = meet(make(2, nodes=3), make(1, nodes=3), make(1, nodes=3))
    assert places[0].node == 0
    assert sorted(one.first_rank for one in places) == [0, 2, 3]
    assert {one.world_size for one in places} == {4}
    assert len({(one.address, one.port) for one in places}) == 1


def test_the_highest_attempt_counts(make):
    one, other = make(), make()
    assert [place.attempt for place in meet(one, other, attempts=[0, 0])] == [0, 0]
    assert [place.attempt for place in meet(one, other, attempts=[1, 1])] == [1, 1]
    other._cut()  # As if it was killed.
    assert "was lost: its connection was closed" in news(one)
    assert [place.attempt for place in meet(one, make(), attempts=[2, 0])] == [2, 2]


def test_who_takes_part_again_was_not_lost(make):
    one, other = make(), make()
    meet(one, other)
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(one.meet, 1)
        while "whose ranks have not ended yet" not in " ".join(one._missing):
            time.sleep(0.01)
        assert other.news() is None
        assert other.meet(1).attempt == again.result(60).attempt == 1


def test_a_silent_launcher_is_lost_to_both_sides(make, monkeypatch):
    one, other = make(silence=1.0), make(silence=1.0)
    meet(one, other)
    monkeypatch.setattr(Link, "beat", lambda self, every: None)  # As in a cut network.
    for launcher in (one, other):
        assert " was lost: " in news(launcher)


def test_who_gives_up_ends_the_others(make):
    one, other = make(), make()
    meet(one, other)
    other.leave("rank 1 was killed")
    with pytest.raises(NotMet, match=r"the launcher on .* has ended: rank 1 was killed"):
        one.meet(1)
    assert one.is_over


def test_the_first_launcher_waits_until_the_others_are_done(make):
    one, other = make(), make()
    meet(one, other)
    leaving = threading.Thread(target=one.leave)
    leaving.start()
    assert other.news() is None
    leaving.join(0.3)
    assert leaving.is_alive()
    other.leave()
    leaving.join(60)
    assert not leaving.is_alive()


@pytest.mark.parametrize("pause", [0.0, 1.0])  # Whether it is told, or finds it out.
def test_who_starts_again_when_the_others_are_done_is_told(make, pause):
    one, other = make(), make()
    meet(one, other)
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(other.meet, 1)
        time.sleep(pause)
        one.leave()
        with pytest.raises(NotMet, match="its ranks are done"):
            again.result(60)


def test_who_comes_when_an_earlier_run_ends_waits_for_the_next_one(make):
    one, other = make(), make()
    meet(one, other)
    with ThreadPoolExecutor(1) as pool:
        comes = make()
        early = pool.submit(comes.meet, 0)
        until_connected(comes, early)
        other.leave()
        one.leave()
        meet_later(make, early)


def test_a_launcher_that_waits_says_for_whom_and_gives_up(make, monkeypatch, caplog):
    monkeypatch.setattr(rendezvous, "SAY_EVERY", 0.5)
    with caplog.at_level(logging.WARNING), pytest.raises(NotMet, match=r"after waiting 2 s for 1"):
        make(patience=2.0).meet(0)
    assert caplog.messages[0].startswith("Waited 0 s of at most 2 s for 1 of 2 launchers (here: ")
    assert len(caplog.messages) > 1


def test_a_place_where_nobody_answers_is_named():
    place = f"{ELSEWHERE}:29500"
    with pytest.raises(NotMet, match=f"for the launcher at {place}, which cannot be reached: "):
        Rendezvous(Layout(1, 2, place, patience=0.5)).meet(0)


def test_another_number_of_nodes_is_rejected(make):
    one, other = make(nodes=2), make(nodes=3)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.meet, 0)
        until_connected(one, waiting)
        with pytest.raises(NotMet, match="--nodes.*3 here.*2"):
            other.meet(0)
        assert meet_later(make, waiting) == 0


def meet_later(make, waiting):
    make().meet(0)
    return waiting.result(60).attempt


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b'{"kind": "join"}\n', b"[1]\n"])
def test_what_is_not_a_launcher_is_sent_away(make, sent):
    one = make()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.meet, 0)
        until_connected(one, waiting)
        host, _, port = (one.layout.rendezvous or "").rpartition(":")
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(sent)
            stranger.settimeout(60)
            while stranger.recv(1000):
                pass
        assert meet_later(make, waiting) == 0


def own_address():
    """Return an address of this host that others may use, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect((ELSEWHERE, 1))  # Sends nothing.
            return asked.getsockname()[0]
        except OSError:  # It has no network.
            return "127.0.0.1"


def test_a_host_is_known_by_its_addresses():
    """Not by its name, which may lead to an address that only the host itself has."""
    for address in (own_address(), "127.0.0.1", "localhost"):
        found = listen(address, free_port())
        assert found is not None
        found.close()
    assert listen(ELSEWHERE, free_port()) is None
    with listen("127.0.0.1", 0) as taken:
        assert listen("127.0.0.1", taken.getsockname()[1]) is None


def test_a_name_that_leads_to_loopback_is_heard_at_all_addresses(monkeypatch):
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.1.1", 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [entry])
    with listen("gpu1", 0) as found:
        assert found.getsockname()[0] in ("::", "0.0.0.0")
