"""How the launchers of several nodes find each other, agree on an attempt, and miss each other.

torch's own rendezvous counts attempts on each node by itself, decides by the name of a host where
it is, and waits without a limit when a connection is cut. Here the launcher on the host of the
meeting place keeps a register of all, and every wait ends.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import struct
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hookloop.errors import HookloopError
from hookloop.parallel.register import Link, Message, Register, is_loopback
from hookloop.parallel.settings import GROW_AFTER, PATIENCE
from hookloop.parallel.warnings_of_torch import set_aside

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

SAY_EVERY = 30.0
"""Seconds after which a launcher says for whom it waits, and again."""

BEAT = 5.0
"""Seconds between two signs of life of a launcher."""

SILENCE = 120.0
"""Seconds without a sign of life after which a launcher is lost.

TCP doubles its pauses, so a cut of one minute may take two to be healed.
"""

LAST, LAST_FAILED = 60.0, 5.0
"""Seconds for which the launcher at the meeting place waits for the others: done, and failed."""

CONNECT_LIMIT, CONNECT_AGAIN = 3.0, 0.5
"""Seconds for one try to connect, and between two of them."""

REJOIN = 10.0
"""Seconds to wait for a node that was lost, where the others are enough to go on."""

_log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Layout:
    """How many ranks there are, and where they meet.

    Attributes:
        ranks: The number on this node, at most.
        nodes: The number of nodes, each with a launcher of its own, at most.
        rendezvous: ``HOST:PORT`` where the launchers of several nodes meet.
        patience: Seconds to wait for the launchers of the other nodes.
        silence: Seconds without a sign of life after which one of them is lost.
        least_ranks: How many ranks on this node are enough; 0 for all.
        least_nodes: How many nodes are enough; 0 for all.
        grow_after: Seconds for which fewer ranks train, before all are started again.
        rejoin: Seconds to wait for a node that was lost, where the others are enough.
    """

    ranks: int
    nodes: int = 1
    rendezvous: str | None = None
    patience: float = PATIENCE
    silence: float = SILENCE
    least_ranks: int = 0
    least_nodes: int = 0
    grow_after: float = GROW_AFTER
    rejoin: float = REJOIN


@dataclass(frozen=True)
class Place:
    """What the ranks of this node are among all ranks of an attempt.

    Attributes:
        attempt: How often the ranks have been started before, the same on all nodes.
        node: The number of this node.
        first_rank: Its first rank.
        world_size: The number of all ranks.
        address: Where the store of all ranks is.
        port: The port of that store.
        ranks: How many ranks are on this node.
        nodes: How many nodes take part.
        interface: The network interface by which the other nodes are reached, if it is known.
    """

    attempt: int
    node: int
    first_rank: int
    world_size: int
    address: str
    port: int
    ranks: int
    nodes: int = 1
    interface: str | None = None


class NotMet(HookloopError):
    """The launchers of the other nodes did not come, or will not."""


class Rendezvous:
    """The connection of this launcher to those of the other nodes.

    Args:
        layout: How many ranks and nodes there are, and where they meet.

    Attributes:
        run_id: What tells this launcher from all others.
        is_growing: Whether the ranks of all nodes have to end, because there can be more.

    >>> Rendezvous(Layout(2)).meet(0).world_size
    2
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.run_id = uuid.uuid4().hex
        self._link: Link | None = None
        self._register: Register | None = None
        # Kept until the end: ranks that still end may look for the last word of another one.
        self._stores: list[Store] = []
        self._beat = min(BEAT, layout.silence / 4)
        self._news: str | None = None
        self._over: str | None = None  # Why there will be no further attempt.
        self._here: list[str] = []
        self._missing: list[str] = []
        self._problem = ""
        self._took_part = False
        self._has_left = False
        self._ranks = layout.ranks
        self.is_growing = False

    # --- before an attempt ------------------------------------------------------------------

    def meet(self, attempt: int, ranks: int | None = None) -> Place:
        """Wait until the launchers of all nodes are ready for an attempt.

        Args:
            attempt: How often this one has started its ranks. The highest number counts, because
                a launcher that was started again begins at 0.
            ranks: How many it starts now; by default as many as there can be.
        """
        self._ranks, self.is_growing = ranks or self.layout.ranks, False
        if self.layout.nodes == 1:
            port = self._open_store()
            return Place(attempt, 0, 0, self._ranks, "127.0.0.1", port, self._ranks)
        self.news()  # Whoever gave up may have said so meanwhile.
        # A connection that nothing was heard of for a while may be cut, so there is a new one.
        before, self._link, self._news = self._link, None, None
        try:
            return self._wait(attempt)
        finally:
            # Only now: the register takes whoever closes it before for lost.
            if before is not None:
                before.close()

    def _wait(self, attempt: int) -> Place:
        start = time.monotonic()
        next_word = start + SAY_EVERY
        while self._over is None and not self._has_left:
            place = self._look(attempt)
            if place is not None:
                return place
            now = time.monotonic()
            if now > start + self.layout.patience:
                waited = f"{self.layout.patience:g} s"
                raise NotMet(f"gave up after waiting {waited} for {self._whom()}")
            if now > next_word:
                next_word = now + SAY_EVERY
                so_far, most = now - start, self.layout.patience
                _log.warning("Waited %d s of at most %g s for %s.", so_far, most, self._whom())
        raise NotMet(self._over or "the launcher has ended")

    def _look(self, attempt: int) -> Place | None:
        """Connect, if that is possible now; return the place once all are here."""
        if self._link is None:
            self._link = self._connect()
            if self._link is None:
                time.sleep(CONNECT_AGAIN)
                return None
            self._link.send(
                "join",
                id=self.run_id,
                name=socket.gethostname(),
                nodes=self.layout.nodes,
                ranks=self._ranks,
                attempt=attempt,
                port=self._open_store() if self._register is not None else 0,
            )
        for message in self._receive(0.1):
            if message.get("kind") == "start":
                return self._place(message, self._link)
        return None

    def _place(self, message: Message, link: Link) -> Place:
        self._took_part = True
        is_first = self._register is not None
        return Place(
            attempt=int(message["attempt"]),
            node=int(message["node"]),
            first_rank=int(message["first_rank"]),
            world_size=int(message["world_size"]),
            address=str(message["address"]) if is_first else link.there,
            port=int(message["port"]),
            ranks=self._ranks,
            nodes=int(message["nodes"]),
            interface=_interface(str(message["address"]) if is_first else link.here),
        )

    def _connect(self) -> Link | None:
        host, _, port = (self.layout.rendezvous or "").rpartition(":")
        host = host.strip("[]")
        self._here, self._missing = [], []
        try:
            if self._register is None and (listener := listen(host, int(port))) is not None:
                self._register = Register(
                    listener,
                    self.layout.nodes,
                    self.run_id,
                    self._beat,
                    self.layout.silence,
                    self.layout.least_nodes,
                    (0.9 * self.layout.patience, self.layout.rejoin),
                )
            return Link(socket.create_connection((host, int(port)), CONNECT_LIMIT))
        except OSError as error:
            self._problem = error.strerror or str(error)
            return None

    def _whom(self) -> str:
        """Return for whom this launcher waits."""
        if self._link is None:
            return f"the launcher at {self.layout.rendezvous}, which cannot be reached: " + (
                self._problem or "no answer"
            )
        number = self.layout.nodes - len(self._here)
        others = "; ".join(self._missing[:8]) if self._missing else f"here: {', '.join(self._here)}"
        return f"{number} of {self.layout.nodes} launchers ({others})"

    def _open_store(self) -> int:
        """Open a store for the ranks of an attempt, and return its port."""
        from torch.distributed import TCPStore  # type: ignore[attr-defined]

        with set_aside():
            store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self._stores.append(store)
        return int(store.port)

    # --- during and after an attempt --------------------------------------------------------

    def news(self) -> str | None:
        """Return what has happened to another launcher, once its ranks will not continue."""
        if self._link is not None:
            self._receive(0.0)
        return self._news

    def grow(self) -> None:
        """Let the ranks of all nodes end in order, so that the next attempt has more."""
        if self._link is not None:
            self._link.send("grow")  # It tells all launchers, this one too.
        self.is_growing = self.is_growing or self.layout.nodes == 1

    @property
    def is_over(self) -> bool:
        """Whether another launcher has ended, so that there is no further attempt."""
        return self._over is not None

    def leave(self, why: str = "") -> None:
        """Tell the others that this launcher ends.

        Args:
            why: Why it failed; by default its ranks have ended in order.
        """
        self._has_left = True
        if self._link is not None:
            self._link.send("end", why=why)
            self._cut()
        if self._register is not None:
            self._register.close(LAST_FAILED if why else LAST)

    def _receive(self, patience: float) -> list[Message]:
        """Read what the register sends, and let it know that this launcher is there."""
        link = self._link
        assert link is not None
        try:
            messages = link.receive(patience)
            link.beat(self._beat)
            if link.is_silent(self.layout.silence):
                raise ConnectionError(f"nothing was heard of it for {self.layout.silence:g} s")
        except OSError as error:
            self._cut()
            self._problem = str(error)
            self._news = f"the launcher at {self.layout.rendezvous} was lost: {error}"
            return []
        for message in messages:
            self._note(message)
        return messages

    def _note(self, message: Message) -> None:
        kind = message.get("kind")
        if kind == "here":
            self._here, self._missing = list(message["here"]), list(message["missing"])
        elif kind == "lost":
            self._news = f"the launcher on {message['who']} was lost: {message['how']}"
        elif kind == "grow":
            self.is_growing = True
        elif kind == "over":
            self._over = self._news = str(message["why"])
        elif kind == "bye":
            if self._took_part:  # The first node is done, and does not wait any longer.
                self._over = f"the launcher at {self.layout.rendezvous} has ended"
            self._cut()

    def _cut(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()


def listen(host: str, port: int) -> socket.socket | None:
    """Return a socket that listens at a meeting place, None if it is not on this host.

    Not by its name: a host may have many, and Debian lets its own lead to 127.0.1.1.
    """
    is_name = _is_name(host)
    for family, kind, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        with suppress(OSError):  # The address of another host, or of a launcher beside this one.
            with socket.socket(family, kind) as probe:
                probe.bind((address[0], 0, *address[2:]))
            if not (is_name and is_loopback(str(address[0]))) or host == "localhost":
                return socket.create_server(address, family=family)
            # Other hosts come by another address than the one that this host knows itself by.
            if socket.has_dualstack_ipv6():
                return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
            return socket.create_server(("", port))
    return None


def _is_name(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return True
    return False


def _interface(address: str) -> str | None:
    """Return the name of the network interface with an address, if it can be found."""
    if sys.platform != "linux" or is_loopback(address):
        return None
    if ":" in address:
        return _interface_of_version_6(address)
    import fcntl

    get_address = 0x8915  # SIOCGIFADDR
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # It has no address.
                asked = struct.pack("256s", os.fsencode(name))
                if socket.inet_ntoa(fcntl.ioctl(asker, get_address, asked)[20:24]) == address:
                    return name
    return None


def _interface_of_version_6(address: str) -> str | None:
    packed = ipaddress.IPv6Address(address).packed.hex()
    with suppress(OSError), open("/proc/net/if_inet6", encoding="ascii") as table:
        for own, *_, name in map(str.split, table):
            if own == packed:
                return name
    return None
