"""Ask a live run for something through files in its directory, from any host that shares it.

The asker writes ``ask/ID.json``, the training writes ``answers/ID.json``. Whoever can write the
directory may ask; nothing in the files is executed, and a request with anything unknown in it is
rejected in the answer.
"""

from __future__ import annotations

import getpass
import math
import os
import re
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Literal, cast

from hookloop.errors import HookloopError
from hookloop.runs.files import make_folder, reject_links, write_bytes
from hookloop.runs.layout import RunDir
from hookloop.runs.life import Holder
from hookloop.runs.reader import holder_of, summarize
from hookloop.runs.reading import read_json
from hookloop.runs.records import to_json

Deed = Literal["save", "validate", "stop", "set"]

DEEDS = ("save", "validate", "stop", "set")
ASK, ANSWERS = "ask", "answers"

LARGEST = 65_536
"""Bytes of a request or an answer that are read."""

MOST = 20
"""How many requests are taken at a look, so that a flood of them does not hold up the thread."""

_ID = re.compile(r"[0-9a-z-]{1,64}")
_POLL, _LOOK_AT_RUN = 0.1, 2.0


@dataclass(frozen=True)
class Request:
    """What is asked of a run.

    Attributes:
        id: The name of the request and of its answer.
        do: What to do.
        settings: For ``set``, the new values by key, such as ``{"optimizer.lr": 1e-4}``.
        to: The process that is asked, as its lock names it; a later one must not answer.
        by: Who asks, to be written down.
    """

    id: str
    do: Deed
    settings: Mapping[str, float] = field(default_factory=dict)
    to: str = ""
    by: str = ""

    @classmethod
    def read(cls, number: str, data: object) -> Request:
        """Read what a file holds.

        Raises:
            ValueError: If it is not a request, or has anything in it that is unknown.
        """
        if not isinstance(data, dict) or data.get("do") not in DEEDS:
            raise ValueError(f"'do' must be one of {', '.join(DEEDS)}")
        if unknown := sorted(str(key) for key in data.keys() - {"do", "settings", "to", "by"}):
            raise ValueError(f"there are unknown keys: {', '.join(unknown)[:200]}")
        settings = data.get("settings", {})
        if not isinstance(settings, dict) or not all(map(is_finite, settings.values())):
            raise ValueError("'settings' must be finite numbers by key")
        if bool(settings) != (data["do"] == "set"):
            raise ValueError("'set' needs settings, and nothing else has them")
        texts = {name: data.get(name, "") for name in ("to", "by")}
        if not all(isinstance(text, str) and len(text) <= 500 for text in texts.values()):
            raise ValueError("'to' and 'by' must be short texts")
        return cls(number, cast("Deed", data["do"]), settings, **texts)


def is_finite(value: object) -> bool:
    """Return whether a value is a finite number, and not true or false."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


# --- the side that asks ---------------------------------------------------------------------------


def ask(
    directory: Path,
    do: Deed,
    settings: Mapping[str, float] | None = None,
    *,
    wait: float = 60.0,
    gives_up: Callable[[], bool] = lambda: False,
) -> dict[str, object]:
    """Ask the run in a directory, and return its answer.

    ``done`` of the answer tells whether it was done, ``reason`` why not. Without an answer in time,
    ``answered`` is false; a request that was not taken yet is withdrawn.

    Args:
        directory: The run's directory.
        do: What to do.
        settings: For ``set``, the new values by key.
        wait: How many seconds to wait for the answer.
        gives_up: Called now and then; True ends the waiting.

    Raises:
        HookloopError: If no process trains there.
    """
    run = RunDir(directory)
    reject_not_running(run)
    holder = holder_of(run)
    request = Request(
        uuid.uuid4().hex, do, settings or {}, identity(holder) if holder else "", _asker()
    )
    content = {name: value for name, value in asdict(request).items() if name != "id" and value}
    file = make_folder(run.path / ASK, run.path) / f"{request.id}.json"
    write_bytes(file, to_json(content).encode(), durable=False)
    try:
        return {"id": request.id, "do": do, **_wait_for_answer(run, request.id, wait, gives_up)}
    finally:  # Also after Ctrl-C: what nobody waits for any more should not be done later.
        file.unlink(missing_ok=True)


def reject_not_running(run: RunDir) -> None:
    """Reject a run that cannot answer, with its state."""
    if not run.path.is_dir() or not run.can_be_continued():
        raise HookloopError(f"'{run.path}' is not the directory of a run.")
    try:
        state = summarize(run)
    except (OSError, ValueError) as error:
        raise HookloopError(f"'{run.path}' cannot be read: {error}") from error
    if state.status != "running":
        reason = f" ({state.reason})" if state.reason else ""
        raise HookloopError(
            f"'{run.path}' is not running: {state.status}{reason}. Only a live run can be asked."
        )


def _wait_for_answer(
    run: RunDir, number: str, wait: float, gives_up: Callable[[], bool]
) -> dict[str, object]:
    answer, asked = run.path / ANSWERS / f"{number}.json", run.path / ASK / f"{number}.json"
    end, look = monotonic() + wait, monotonic() + _LOOK_AT_RUN
    while True:
        reject_links(answer.parent, run.path)
        with suppress(FileNotFoundError):
            found = read_json(answer, LARGEST)
            answer.unlink(missing_ok=True)
            if not isinstance(found, dict):
                raise HookloopError(f"'{answer}' is not an answer.")
            return {"answered": True, **found}
        if monotonic() > end or gives_up():
            break
        if monotonic() > look:
            reject_not_running(run)
            look = monotonic() + _LOOK_AT_RUN
        sleep(_POLL)
    what = "it was not taken, and is withdrawn" if asked.exists() else f"it is to be in '{answer}'"
    reason = f"there is no answer after {wait:g} seconds; {what}"
    return {"answered": False, "done": False, "reason": reason}


def _asker() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # A container may have no name for its user.
        user = str(getattr(os, "getuid", lambda: "someone")())
    return f"{user} on {socket.gethostname()}"


# --- the side that answers ------------------------------------------------------------------------


def identity(holder: Holder) -> str:
    """Return what names a process, whichever file its lock is."""
    return Holder(holder.pid, holder.host, holder.begun).text


def take_requests(directory: Path, own: str) -> Iterator[tuple[str, Request | str]]:
    """Take the requests that wait: each with its ID, and as it is or the reason to reject it.

    A request is deleted before it is done, so that none is done twice.

    Args:
        directory: The run's directory.
        own: The process that answers, see `identity`.
    """
    try:
        folder = directory / ASK
        reject_links(folder, directory)
        with os.scandir(folder) as entries:
            # A link could lead to any file, and a pipe could block.
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):  # Nobody has asked yet.
        return
    # Only what `ask` can have written: a request is deleted when it is taken.
    waiting = sorted(n for n in names if n.endswith(".json") and _ID.fullmatch(n[:-5]))
    for name in waiting[:MOST]:
        number = name.removesuffix(".json")
        try:
            found: Request | str = Request.read(number, read_json(folder / name, LARGEST))
        except FileNotFoundError:  # It was withdrawn.
            continue
        except (OSError, ValueError) as error:
            found = str(error)
        (folder / name).unlink(missing_ok=True)
        if isinstance(found, Request) and found.to not in ("", own):
            found = f"it is for another process: {found.to}"
        yield number, found


def give_answer(directory: Path, number: str, answer: Mapping[str, object]) -> None:
    """Write the answer to a request."""
    folder = make_folder(directory / ANSWERS, directory)
    write_bytes(folder / f"{number}.json", to_json(answer).encode(), durable=False)
