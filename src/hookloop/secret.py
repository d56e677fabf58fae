"""Values that are used and never shown: secrets, and references to the environment.

A config names them (``${secret:KEY}``, ``${env:KEY}``), and whatever a run writes or sends holds
that name instead of the value.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Self

SHORTEST = 8
"""Characters of a secret that is looked for in text; a shorter one would be found everywhere."""

_HIDDEN: dict[str, str] = {}
"""What the process has read, with its reference. Exceptions and messages come from code that knows
nothing of a run, so what must not be shown is known to all of the process."""


class Secret(str):
    """Text that stands for itself in code, and for its reference wherever it is shown or kept.

    Args:
        text: The text.
        reference: What to show instead.

    >>> token = Secret("s3cr3t-token", "${secret:TOKEN}")
    >>> token, f"Bearer {token}"
    ('${secret:TOKEN}', 'Bearer s3cr3t-token')
    """

    reference: str

    def __new__(cls, text: str, reference: str) -> Self:
        """Make the text, and remember not to show it."""
        made = super().__new__(cls, text)
        made.reference = reference
        hide(str.__str__(made), reference)
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (str.__str__(self), self.reference)

    def __repr__(self) -> str:
        return repr(self.reference)


class Reference(str):
    """A reference as it is written, which remembers the value that it had in this process.

    Args:
        text: The reference.
        value: What it stands for.
    """

    value: object

    def __new__(cls, text: str, value: object) -> Self:
        """Make the text of the reference."""
        made = super().__new__(cls, text)
        made.value = value
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[str, object]]:
        return type(self), (str.__str__(self), self.value)


def hide(text: str, reference: str) -> None:
    """Let `redact` put a reference in the place of a text from now on."""
    if len(text) >= SHORTEST and not text.isdigit():
        _HIDDEN[text] = reference


def redact(text: str) -> str:
    """Return a text with references in the place of all secrets that are known.

    >>> hide("s3cr3t-token", "${secret:TOKEN}")
    >>> redact("401 for https://s3cr3t-token@host")
    '401 for https://${secret:TOKEN}@host'
    """
    if isinstance(text, Secret):
        return text.reference
    for value in sorted(_HIDDEN, key=len, reverse=True) if _HIDDEN else ():
        if value in text:
            text = text.replace(value, _HIDDEN[value])
    return text


def redact_bytes(data: bytes) -> bytes:
    """Do the same with the bytes of a text file."""
    for value in sorted(_HIDDEN, key=len, reverse=True):
        data = data.replace(value.encode(), _HIDDEN[value].encode())
    return data


def without_credentials(url: str) -> str:
    """Take user and password out of a URL, and secrets out of the rest.

    >>> without_credentials("sftp://me:pass@host/runs")
    'sftp://host/runs'
    """
    return redact(re.sub(r"(?<=://)[^/@]*@", "", url))


def show_references(config: Mapping[str, object]) -> dict[str, object]:
    """Return a config with references in the place of secrets."""
    return {name: _show(value) for name, value in config.items()}


def _show(value: object) -> object:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return show_references(value)
    if isinstance(value, list | tuple):
        items = [_show(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def fingerprints(config: Mapping[str, object]) -> dict[str, int]:
    """Return a checksum for each number of a config that came from the environment.

    Only of numbers and switches, which change what a training does; text is a path or a name, which
    another machine may need to have otherwise, or worth hiding. Sixteen bits show that a number has
    changed, and not what it was.

    >>> list(
    ...     fingerprints({"lr": Reference("${env:LR}", 0.1), "home": Reference("${env:HOME}", "/")})
    ... )
    ['lr']
    """
    found = {}
    for name, value in config.items():
        if isinstance(value, Reference) and isinstance(value.value, int | float):
            found[str(name)] = zlib.crc32(repr(value.value).encode()) & 0xFFFF
        items = enumerate(value) if isinstance(value, list) else ()
        below = value if isinstance(value, Mapping) else {str(n): item for n, item in items}
        found |= {f"{name}.{key}": number for key, number in fingerprints(below).items()}
    return found
