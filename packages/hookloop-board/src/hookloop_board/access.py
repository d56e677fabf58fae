"""Who may use the board: hosts, token, origin, and the headers that every answer has."""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlencode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]/@\s]+)(:\d{1,5})?", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach what listens on a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Access:
    """What a server demands of a request.

    Attributes:
        host: The host that it listens on.
        port: The port, for the name of the cookie.
        token: The token; None where none is needed, which is on loopback alone.
    """

    host: str
    port: int
    token: str | None = field(repr=False, default=None)

    @property
    def cookie(self) -> str:
        """The name of the cookie; another server on this machine has another."""
        return f"hookloop-board-{self.port}"

    def accepts_host(self, header: str) -> bool:
        """Return whether a Host header names this server: another name may lead here by DNS.

        The port may be another one, through a tunnel of ssh.
        """
        found = _HOST.fullmatch(header)
        if found is None:
            return False
        name = found[1].strip("[]").lower().rstrip(".")
        if name in _LOOPBACK or name == self.host.lower():
            return True
        if is_loopback(self.host):
            return False
        try:  # An address is not looked up, so that nobody can bend it.
            ipaddress.ip_address(name)
        except ValueError:
            own = socket.gethostname().lower()
            return name in (own, own.partition(".")[0], socket.getfqdn().lower())
        return True

    def accepts_token(self, given: str | None) -> bool:
        """Return whether a token is the right one; it takes as long for any wrong one."""
        if self.token is None:
            return True
        return given is not None and hmac.compare_digest(given.encode(), self.token.encode())


class Guard:
    """Middleware that rejects what must not pass, and adds the headers.

    Args:
        app: What is guarded.
        access: What is demanded.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or reject it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in HEADERS.items()
                        if name.encode() not in known
                    ),
                ]
            await send(message)

        headers = {name.decode("latin-1"): one.decode("latin-1") for name, one in scope["headers"]}
        rejection = self._reject(scope, headers)
        if rejection is not None:
            await rejection(scope, receive, with_headers)
        else:
            await self.app(scope, receive, with_headers)

    def _reject(self, scope: Scope, headers: Mapping[str, str]) -> ASGIApp | None:
        """Return the answer to a request that must not pass; None for one that may."""
        from starlette.responses import JSONResponse

        def error(status: int, text: str) -> ASGIApp:
            return JSONResponse({"error": text}, status)

        host = headers.get("host", "")
        if not self.access.accepts_host(host):
            return error(403, "The board does not answer to this host name: use its own address.")
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if self.access.token is not None:
            if scope["path"] == "/" and "token" in query:
                return self._enter(query)
            if not self._has_token(headers):
                return error(401, "The token is missing or wrong: open the address with ?token=.")
        is_read = scope["method"] in ("GET", "HEAD")
        if not is_read and headers.get("origin") not in (f"http://{host}", f"https://{host}"):
            return error(403, "Changes are accepted from the board's own page only.")
        # A browser says where a request comes from; a link to the page itself is fine.
        if headers.get("sec-fetch-site") == "cross-site" and scope["path"] != "/":
            return error(403, "The board answers its own page only.")
        return None

    def _has_token(self, headers: Mapping[str, str]) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.access.accepts_token(given.strip()):
            return True
        # Other servers on this machine have cookies, too, some of which no parser would take.
        cookies = (one.strip().partition("=") for one in headers.get("cookie", "").split(";"))
        return any(
            name == self.access.cookie and self.access.accepts_token(unquote(value))
            for name, _, value in cookies
        )

    def _enter(self, query: Mapping[str, list[str]]) -> ASGIApp:
        """Take the token from the address into a cookie, so that it is not shown any longer."""
        from starlette.responses import JSONResponse, RedirectResponse

        token = query["token"][-1]
        if not self.access.accepts_token(token):
            return JSONResponse({"error": "The token is wrong."}, 401)
        rest = urlencode({name: ones for name, ones in query.items() if name != "token"}, True)
        response = RedirectResponse(f"./?{rest}" if rest else "./", 303)
        value = quote(token, safe="")
        response.set_cookie(self.access.cookie, value, httponly=True, samesite="strict", path="/")
        return response
