"""Secrets, and references to the environment: values that are used but never shown.

A config names them (``${secret:KEY}``, ``${env:KEY}``). Everything that a run writes or sends holds
that name instead of the value.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Self

SHORTEST = 8
"""The least length of a secret that is searched for in text; a shorter one would match anything."""

_HIDDEN: dict[str, str] = {}
"""Secrets that this process has read, with their references. It is global because exceptions and
messages come from code that knows nothing of a run."""


class Secret(str):
    """Text that code uses as it is, while its repr and all files show the reference.

    Args:
        text: The secret text.
        reference: What to show instead of it.

    >>> token = Secret("s3cr3t-token", "${secret:TOKEN}")
    >>> token, f"Bearer {token}"
    ('${secret:TOKEN}', 'Bearer s3cr3t-token')
    """

    reference: str

    def __new__(cls, text: str, reference: str) -> Self:
        """Create the text, and remember not to show it."""
        secret = super().__new__(cls, text)
        secret.reference = reference
        hide(str.__str__(secret), reference)
        return secret

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        # A worker process gets a copy by pickle, and has to know not to show it, too.
        return type(self), (str.__str__(self), self.reference)

    def __repr__(self) -> str:
        # Lists, dataclasses and tracebacks show what they hold by its repr.
        return repr(self.reference)


class Reference(str):
    """The text of a reference, which also remembers the value that it had in this process.

    Args:
        text: The reference as it is written.
        value: The value that it stands for.
    """

    value: object

    def __new__(cls, text: str, value: object) -> Self:
        """Create the text of the reference."""
        reference = super().__new__(cls, text)
        reference.value = value
        return reference

    def __reduce__(self) -> tuple[type[Self], tuple[str, object]]:
        # By default, pickle would call `__new__` with the text alone, and fail.
        return type(self), (str.__str__(self), self.value)


def hide(text: str, reference: str) -> None:
    """Make `redact` replace a text by a reference from now on."""
    # Digits alone are left: replaced in every message, they would garble counts and times.
    if len(text) >= SHORTEST and not text.isdigit():
        _HIDDEN[text] = reference


def has_secrets() -> bool:
    """Return whether `redact` knows anything to replace."""
    return bool(_HIDDEN)


def redact(text: str) -> str:
    """Return a text in which every known secret is replaced by its reference.

    >>> hide("s3cr3t-token", "${secret:TOKEN}")
    >>> redact("401 for https://s3cr3t-token@host")
    '401 for https://${secret:TOKEN}@host'
    """
    if isinstance(text, Secret):
        return text.reference
    # The longest first: a secret may contain another one, of which the rest would stay visible.
    for value in sorted(_HIDDEN, key=len, reverse=True) if _HIDDEN else ():
        if value in text:
            text = text.replace(value, _HIDDEN[value])
    return text


def redact_bytes(data: bytes) -> bytes:
    """Do the same as `redact` for the bytes of a text file."""
    for value in sorted(_HIDDEN, key=len, reverse=True):
        data = data.replace(value.encode(), _HIDDEN[value].encode())
    return data


def without_credentials(url: str) -> str:
    """Return a URL without user and password, and with the rest redacted.

    >>> without_credentials("sftp://me:pass@host/runs")
    'sftp://host/runs'
    """
    # Only before the first slash: an @ in the path does not end a password.
    return redact(re.sub(r"(?<=://)[^/@]*@", "", url))


def show_references(config: Mapping[str, object]) -> dict[str, object]:
    """Return a config in which every secret is replaced by its reference."""
    return {name: _show(value) for name, value in config.items()}


def _show(value: object) -> object:
    # A `Secret` is text as well: `redact` returns its reference.
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

    Text is left out: it is a path or a name, which may differ on another machine, or it should stay
    hidden. Sixteen bits are enough to show that a number has changed, and too few to reveal it.

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
