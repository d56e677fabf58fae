"""What the page may change: ask a live run, and write tags and a note."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from hookloop.runs import DEEDS, ask
from hookloop.runs import set_labels as write_labels
from hookloop_board.collection import Entry

if TYPE_CHECKING:
    from hookloop.runs import Deed

PATIENCE = 30.0
"""Seconds to wait for the answer of a run."""


def ask_run(
    entry: Entry, body: Mapping[str, object], is_ending: Callable[[], bool]
) -> Mapping[str, object]:
    """Ask a run for something, and return its answer.

    Args:
        entry: The run.
        body: ``do``, and ``settings`` for ``set``.
        is_ending: Whether to stop waiting, because the server ends.

    Raises:
        ValueError: If it is not a request.
        HookloopError: If the run is not running.
    """
    do, settings = body.get("do"), body.get("settings") or {}
    if do not in DEEDS:
        raise ValueError(f"'do' must be one of {', '.join(DEEDS)}")
    if not isinstance(settings, dict) or not all(map(_is_finite, settings.values())):
        raise ValueError("'settings' must be finite numbers by key")
    if bool(settings) != (do == "set"):
        raise ValueError("'set' needs settings, and nothing else has them")
    return ask(entry.home, cast("Deed", do), settings, wait=PATIENCE, gives_up=is_ending)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def set_labels(entry: Entry, body: Mapping[str, object]) -> dict[str, object]:
    """Replace the tags and the note of a run.

    Raises:
        ValueError: If they are not text.
        HookloopError: If one is not a tag.
    """
    tags, note = body.get("tags", []), body.get("note", "")
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError("'tags' must be a list of words")
    if not isinstance(note, str):
        raise ValueError("'note' must be a text")
    # Those of the config are shown with them, and are not written a second time.
    given = entry.row.config.get("tags") or []
    of_config = {given} if isinstance(given, str) else set(map(str, given))  # type: ignore[call-overload]
    own = [tag for tag in tags if tag not in of_config]
    noted = "" if note == str(entry.row.config.get("notes") or "") else note
    labels = write_labels(entry.dir, own, noted).with_config(entry.row.config)
    return {"tags": list(labels.tags), "note": labels.note}
