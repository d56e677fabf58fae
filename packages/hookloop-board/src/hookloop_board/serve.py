"""Listen on a port, and serve the board until Ctrl-C."""

from __future__ import annotations

import errno
import ipaddress
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import uvicorn

from hookloop import HookloopError
from hookloop_board.access import Access, is_loopback
from hookloop_board.app import Board, make_app
from hookloop_board.collection import Collection

PORT = 6060
MOST_TRIED = 50
"""How many ports are tried after the first, if none was asked for."""


class Server(uvicorn.Server):
    """Ends its open streams as soon as it is asked to end.

    Args:
        config: How to serve.
        board: What is served.
        tell: Called with nothing when it is ready.
    """

    def __init__(self, config: uvicorn.Config, board: Board, tell: Callable[[], None]) -> None:
        super().__init__(config)
        self._board = board
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started:
            self._tell()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; otherwise an open page would keep the server alive."""
        self._board.close()
        await super().shutdown(sockets)


def listen(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens; without a port, the first free one from `PORT` on.

    Raises:
        HookloopError: If the port is taken, or the host is not one of this machine.
    """
    ports = [port] if port is not None else [*range(PORT, PORT + MOST_TRIED), 0]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in ports:
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, number))
            found.listen(128)
        except OSError as error:
            found.close()
            if error.errno == errno.EADDRINUSE and port is None:
                continue
            if error.errno == errno.EADDRINUSE:
                reason = f"Port {port} is taken: choose another, or none for the next free one."
            else:
                reason = f"The board cannot listen on '{host}': {error.strerror or error}."
            raise HookloopError(reason) from error
        return found
    raise HookloopError("No port is free: give one with --port.")


def address_of(host: str, port: int, token: str | None) -> str:
    """Return the address to open in a browser.

    >>> address_of("127.0.0.1", 6060, None)
    'http://localhost:6060/'
    """
    name = host
    if is_loopback(host):
        name = "localhost" if host != "::1" else "[::1]"
    else:
        with suppress(ValueError):
            if ipaddress.ip_address(host).is_unspecified:
                name = socket.gethostname()
            elif ":" in host:
                name = f"[{host}]"
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(24)


def serve(
    roots: Sequence[Path],
    page: Path | None,
    listening: socket.socket,
    access: Access,
    tell: Callable[[], None],
) -> None:
    """Serve until a signal ends it.

    Args:
        roots: The directories with runs.
        page: The directory of the built page.
        listening: The socket.
        access: What is demanded of requests.
        tell: Called when it is ready.
    """
    app = make_app(Collection(roots), access, page)
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=2,
        limit_concurrency=500,
        h11_max_incomplete_event_size=65_536,
    )
    server = Server(config, app.state.board, tell)
    # The first look at the runs computes while pages open: those wait for it a fifth as long.
    sys.setswitchinterval(0.001)
    with suppress(KeyboardInterrupt):  # The usual end.
        server.run([listening])
