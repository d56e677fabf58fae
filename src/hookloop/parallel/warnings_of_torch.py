"""What torch's C++ code warns of while ranks connect, kept aside unless they fail to."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

STDERR = 2

_WARNING = re.compile(
    rb"\[W[^\]\n]*\] \[c10d\]|Exception raised from |frame #\d+: |<omitting python"
)


@contextmanager
def set_aside() -> Iterator[None]:
    """Show warnings about connections only if what is done inside fails.

    On hosts without a name in DNS each successful start has some, and a store that is not there
    yet has a page of C++ frames. Everything else that is written meanwhile is shown afterwards.
    """
    _flush()
    try:
        terminal = os.dup(STDERR)
    except OSError:  # It is closed, so that nothing would be seen.
        yield
        return
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), STDERR)
        failed = True
        try:
            yield
            failed = False
        finally:
            _flush()
            os.dup2(terminal, STDERR)
            os.close(terminal)
            _show(kept, everything=failed)


def _flush() -> None:
    if sys.stderr is not None:  # As without a console.
        sys.stderr.flush()


def _show(kept: IO[bytes], *, everything: bool) -> None:
    kept.seek(0)
    was_warning = False
    for line in kept:
        # An empty line ends the frames of a warning.
        is_warning = _WARNING.match(line) is not None or (was_warning and not line.strip())
        if everything or not is_warning:
            os.write(STDERR, line)
        was_warning = is_warning
