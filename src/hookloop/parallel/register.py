"""The register of the launchers of a run on several nodes, kept at the place where they meet.

Each launcher has a connection to it, on which both sides send a line of JSON now and then: whoever
is silent for too long, or closes the connection without a word, is lost. Nothing that arrives here
is run or unpickled.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

LONGEST = 65_536
"""The longest line that is read; whoever sends a longer one is not a launcher."""

SEND_LIMIT = 5.0
"""Seconds after which a line that cannot be sent counts as a closed connection."""

LOOK_EVERY = 0.1
"""Seconds between two looks at all connections."""

Message = dict[str, Any]


class Link:
    """A connection on which lines of JSON travel.

    Args:
        connection: A connected socket.

    Attributes:
        heard: When something arrived last.
        here: The address of this side.
        there: The address of the other side.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(SEND_LIMIT)
        self._socket = connection
        self._rest = b""
        self._sent = 0.0
        self.heard = time.monotonic()
        self.here = _plain(connection.getsockname()[0])
        self.there = _plain(connection.getpeername()[0])

    def fileno(self) -> int:
        """Return the number by which the system knows the connection."""
        return self._socket.fileno()

    def send(self, kind: str, **fields: object) -> None:
        """Send a message; a connection that is broken is noticed by whoever reads it."""
        self._sent = time.monotonic()
        with suppress(OSError):
            self._socket.sendall(json.dumps({"kind": kind, **fields}).encode() + b"\n")

    def beat(self, every: float) -> None:
        """Send a sign of life, if nothing was sent for a while."""
        if time.monotonic() > self._sent + every:
            self.send("alive")

    def receive(self, patience: float = 0.0) -> list[Message]:
        """Return the messages that have arrived; raise an OSError if no more can come."""
        if self.fileno() < 0:
            raise ConnectionError("its connection was closed")
        if not wait([self._socket], patience):
            return []
        chunk = self._socket.recv(LONGEST)
        if not chunk:
            raise ConnectionError("its connection was closed")
        self.heard = time.monotonic()
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        try:
            messages = [json.loads(line) for line in lines]
        except ValueError as error:
            raise ConnectionError("it is not a launcher of hookloop") from error
        if len(self._rest) > LONGEST or not all(isinstance(one, dict) for one in messages):
            raise ConnectionError("it is not a launcher of hookloop")
        return messages

    def is_silent(self, limit: float) -> bool:
        """Return whether nothing has arrived for longer than a limit."""
        return time.monotonic() > self.heard + limit

    def close(self) -> None:
        """Close the connection; what was sent still arrives."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            # With something unread the system would cut the connection instead of ending it.
            self._socket.setblocking(False)
            while self._socket.recv(LONGEST):
                pass
        self._socket.close()


@dataclass(eq=False)
class _Launcher:
    """A launcher on the register."""

    link: Link
    id: str
    label: str
    ranks: int
    attempt: int
    port: int
    is_waiting: bool = True


class Register:
    """Brings the launchers together for each attempt, and tells them when one of them is lost.

    It runs in a thread of the launcher at the meeting place.

    Args:
        listener: A socket that listens.
        nodes: How many launchers there are.
        own: The id of the launcher that keeps it; its node is the first.
        beat: Seconds between two signs of life.
        silence: Seconds without one after which a launcher is lost.
        least: How many launchers are enough, where the others do not come.
        waits: Seconds to wait for the others then: at the beginning, and once an attempt was made.
    """

    def __init__(
        self,
        listener: socket.socket,
        nodes: int,
        own: str,
        beat: float,
        silence: float,
        least: int = 0,
        waits: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self._listener = listener
        self._nodes = nodes
        self._least = least or nodes
        self._waits = waits
        self._since = time.monotonic()
        self._is_growing = False
        self._own = own
        self._beat = beat
        self._silence = silence
        self._strangers: list[Link] = []
        self._launchers: list[_Launcher] = []
        self._last: dict[str, str] = {}
        self._over = ""
        self._closes_at: float | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self, patience: float) -> None:
        """End when all others have left, at the latest after some seconds."""
        self._closes_at = time.monotonic() + patience
        self._thread.join(patience + SEND_LIMIT)

    def _run(self) -> None:
        while self._closes_at is None or (self._is_used() and time.monotonic() < self._closes_at):
            links = [*self._strangers, *(one.link for one in self._launchers)]
            numbers = [link.fileno() for link in links]
            ready = wait([self._listener, *numbers], LOOK_EVERY)
            if self._listener in ready:
                with suppress(OSError):
                    self._strangers.append(Link(self._listener.accept()[0]))
            for number, link in zip(numbers, links, strict=True):
                if number in ready:
                    self._read(link)
                link.beat(self._beat)
                if link.is_silent(self._silence):
                    self._lose(link, f"nothing was heard of it for {self._silence:g} s")
            self._look_around()
        for one in self._launchers:
            one.link.send("bye")
            one.link.close()
        for link in self._strangers:
            link.close()
        self._listener.close()

    def _is_used(self) -> bool:
        """Return whether launchers of the last attempt are still here, besides the own one."""
        return any(one.id in self._last and one.id != self._own for one in self._launchers)

    def _read(self, link: Link) -> None:
        try:
            for message in link.receive():
                kind = message.get("kind")
                if kind == "join":
                    self._join(link, message)
                elif kind == "grow":
                    self._grow()
                elif kind == "end":
                    self._end(link, str(message.get("why", "")))
        except OSError as error:
            self._lose(link, str(error))
        except (KeyError, TypeError, ValueError):
            self._lose(link, "it does not speak as this version of hookloop does")

    def _join(self, link: Link, message: Message) -> None:
        address = "" if message["id"] == self._own else f" ({link.there})"
        one = _Launcher(
            link,
            str(message["id"]),
            f"{message['name']}{address}",
            int(message["ranks"]),
            int(message["attempt"]),
            int(message["port"]),
        )
        self._forget(link)
        for earlier in [each for each in self._launchers if each.id == one.id]:
            self._drop(earlier.link)  # It joins on a new connection, which surely works.
        if message["nodes"] != self._nodes:
            theirs, ours = message["nodes"], self._nodes
            link.send("over", why=f"--nodes is {theirs} here, but {ours} at the meeting place")
            link.close()
            return
        if self._over and one.id in self._last:
            link.send("over", why=self._over)
            link.close()
            return
        self._launchers.append(one)
        waiting = self._waiting()
        if len(waiting) == 1:
            self._since = time.monotonic()
        if len(waiting) < self._nodes or all(one.id != self._own for one in waiting):
            self._tell()
        else:
            self._start(sorted(waiting, key=self._order)[: self._nodes])

    def _waiting(self) -> list[_Launcher]:
        return [one for one in self._launchers if one.is_waiting]

    def _look_around(self) -> None:
        """Where fewer launchers are enough: start with those that are here, or let others in."""
        waiting = self._waiting()
        if self._least == self._nodes or not waiting or self._closes_at is not None:
            return
        waits = time.monotonic() - self._since
        busy = [one for one in self._launchers if not one.is_waiting]
        if busy:
            # Those that train end in order, to begin again together with the new one.
            if len(busy) < self._nodes and busy[0].id in self._last and waits > self._waits[1]:
                self._grow()
            return
        is_own_here = any(one.id == self._own for one in waiting)
        is_late = waits > self._waits[bool(self._last)]
        if is_own_here and is_late and len(waiting) >= self._least:
            self._start(sorted(waiting, key=self._order)[: self._nodes])

    def _grow(self) -> None:
        """Tell all that train to end in order, because there can be more ranks."""
        if not self._is_growing:
            self._is_growing = True
            for one in self._launchers:
                if not one.is_waiting:
                    one.link.send("grow")

    def _order(self, one: _Launcher) -> tuple[object, ...]:
        # The same in each attempt, so that a node keeps its ranks.
        return one.id != self._own, one.label, one.id

    def _start(self, chosen: Sequence[_Launcher]) -> None:
        """Start an attempt: its number is the highest that any of them expects."""
        for one in [one for one in self._launchers if one not in chosen and not one.is_waiting]:
            self._drop(one.link)  # Its place was taken by one that came instead.
        attempt = max(one.attempt for one in chosen)
        # A name of the first node may lead to itself only; the address that others used does not.
        reached = [one.link.here for one in chosen if not is_loopback(one.link.here)]
        self._last = {one.id: one.label for one in chosen}
        self._is_growing = False
        first = 0
        for node, one in enumerate(chosen):
            one.is_waiting = False
            one.link.send(
                "start",
                attempt=attempt,
                node=node,
                first_rank=first,
                world_size=sum(each.ranks for each in chosen),
                nodes=len(chosen),
                address=reached[0] if reached else one.link.here,
                port=chosen[0].port,
            )
            first += one.ranks

    def _end(self, link: Link, why: str) -> None:
        gone = self._find(link)
        self._drop(link)
        if gone is None:
            return
        if why:
            self._over = f"the launcher on {gone.label} has ended: {why}"
        else:
            self._over = f"the launcher on {gone.label} has ended: its ranks are done"
        for one in [one for one in self._launchers if one.id in self._last]:
            if one.is_waiting:
                one.link.send("over", why=self._over)
                self._drop(one.link)
            elif why:  # Where ranks are done, those of the others may take a moment longer.
                one.link.send("over", why=self._over)
        self._tell()

    def _lose(self, link: Link, how: str) -> None:
        gone = self._find(link)
        self._drop(link)
        if gone is None:
            return
        for one in self._launchers:
            if not one.is_waiting and not gone.is_waiting:
                one.link.send("lost", who=gone.label, how=how)
        self._tell()

    def _tell(self) -> None:
        """Tell those that wait who is here, and who of the last attempt is not."""
        here = [one.label for one in self._launchers if one.is_waiting]
        busy = [one.label for one in self._launchers if not one.is_waiting]
        came = list(here)
        missing = []
        for label in self._last.values():
            if label in came:
                came.remove(label)
            elif label in busy:
                missing.append(f"{label}, whose ranks have not ended yet")
            else:
                missing.append(f"{label}, which was lost")
        for one in self._launchers:
            if one.is_waiting:
                one.link.send("here", here=here, missing=missing)

    def _find(self, link: Link) -> _Launcher | None:
        return next((one for one in self._launchers if one.link is link), None)

    def _drop(self, link: Link) -> None:
        self._forget(link)
        link.close()

    def _forget(self, link: Link) -> None:
        self._launchers = [one for one in self._launchers if one.link is not link]
        self._strangers = [one for one in self._strangers if one is not link]


def _plain(address: str) -> str:
    """Return an address of version 4 as such, also where a socket of version 6 listens."""
    return address.removeprefix("::ffff:")


def is_loopback(address: str) -> bool:
    """Return whether only this host can use an address."""
    return address.startswith("127.") or address == "::1"
