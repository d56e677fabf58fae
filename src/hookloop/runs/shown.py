"""Text from files and from other people's code, made safe to show on a terminal."""

from __future__ import annotations

import errno
import re
from typing import TextIO

from hookloop.secret import redact

# Control characters but tab and newline; those that turn the direction of text around or end a
# line; and halves of characters, which stand for bytes that are not text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_HALVES = re.compile("[\ud800-\udfff]")


GONE = (errno.EPIPE, errno.EIO, errno.EBADF)
"""What writing fails with when the reader has gone away: ``| head -1``, a closed terminal."""


def shown(text: str) -> str:
    r"""Return the text without secrets, and with codes that a terminal would obey written out.

    >>> print(shown("red \x1b[31m"))
    red \x1b[31m
    """
    return _HALVES.sub(_escape, _CONTROL.sub(_escape, redact(text)))


def shown_in_line(text: str, longest: int = 300) -> str:
    r"""Do the same with a text that has to fit in a line: of its lines none begins a new one.

    >>> print(shown_in_line("a\nb"))
    a\nb
    """
    line = shown(text).replace("\n", "\\n").replace("\t", "\\t")
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def print_line(stream: TextIO | None, text: str) -> None:
    """Print a line at once, whatever the stream can show of it.

    Nothing happens if the stream is closed, or if its reader has gone away.
    """
    if stream is None or getattr(stream, "closed", False):
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(shown(text).encode(encoding, "replace").decode(encoding) + "\n")
        stream.flush()
    except OSError as error:
        if error.errno not in GONE:
            raise


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
