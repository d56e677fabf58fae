"""Make text from files and from other people's code safe to show on a terminal."""

from __future__ import annotations

import errno
import re
from typing import TextIO

from hookloop.secret import redact

# Control characters except tab and newline, and characters that reverse the direction of text or
# end a line: in a message they could hide or forge parts of it. Lone surrogates stand for bytes
# that are not text, and cannot be printed.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_SURROGATES = re.compile("[\ud800-\udfff]")


GONE = (errno.EPIPE, errno.EIO, errno.EBADF)
"""Errors of a stream whose reader has gone away: ``| head -1``, a closed terminal."""


def make_safe(text: str) -> str:
    r"""Return the text without secrets, and with terminal codes escaped.

    >>> print(make_safe("red \x1b[31m"))
    red \x1b[31m
    """
    return _SURROGATES.sub(_escape, _CONTROL.sub(_escape, redact(text)))


def make_safe_line(text: str, longest: int = 300) -> str:
    r"""Do the same as `make_safe`, and bring the text into a single line of limited length.

    >>> print(make_safe_line("a\nb"))
    a\nb
    """
    line = make_safe(text).replace("\n", "\\n").replace("\t", "\\t")
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def show_size(count: int) -> str:
    """Return a number of bytes as people read it.

    >>> show_size(2_372), show_size(600_000_000)
    ('2.4 kB', '600.0 MB')
    """
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def print_line(stream: TextIO | None, text: str) -> None:
    """Print a line and flush it; characters that the stream cannot encode are replaced.

    Nothing happens if the stream is closed, or if its reader has gone away.
    """
    if stream is None or getattr(stream, "closed", False):
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(make_safe(text).encode(encoding, "replace").decode(encoding) + "\n")
        stream.flush()
    except OSError as error:
        if error.errno not in GONE:
            raise


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
