"""Read secrets from the environment, or from a file."""

from __future__ import annotations

import os
from pathlib import Path

from hookloop.errors import HookloopError
from hookloop.secret import Secret

FILE = "file:"
LONGEST = 1 << 16
"""The most characters of a file with a secret; a larger file is something else."""


def read_secret(name: str) -> Secret:
    """Read a secret.

    Args:
        name: An environment variable; if it is not set, the variable ``<name>_FILE`` may name a
            file instead. Or ``file:`` and the path of a file.

    Raises:
        HookloopError: If there is no secret, or it cannot be read.
    """
    if name.startswith(FILE):
        text = _read_file(name.removeprefix(FILE).strip())
    elif (found := os.environ.get(name)) is not None:
        text = found
    # The convention of container images, whose secrets are mounted as files.
    elif (file := os.environ.get(f"{name}_FILE")) is not None:
        text = _read_file(file)
    else:
        raise HookloopError(
            f"the secret '{name}' is missing: set the environment variable {name}, or let "
            f"{name}_FILE name a file that holds it."
        )
    if not text:
        raise HookloopError(f"the secret '{name}' is empty.")
    return Secret(text, f"${{secret:{name}}}")


def _read_file(path: str) -> str:
    file = Path(path).expanduser()
    if not file.is_absolute():  # A run may be continued from another working directory.
        raise HookloopError(f"the file of a secret needs an absolute path, not '{path}'.")
    try:
        with file.open(encoding="utf-8") as opened:
            # One more than allowed shows that it is too large, without reading all of it.
            text = opened.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise HookloopError(f"the file '{path}' with a secret cannot be read: {reason}.") from error
    if len(text) > LONGEST:
        raise HookloopError(f"the file '{path}' is too large to be a secret.")
    return text.strip()  # An editor ends the file with a newline, which is not part of the secret.
