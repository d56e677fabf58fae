"""Tags and a note that people give to a run: ``tags.json`` in its directory, and its config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hookloop.errors import HookloopError
from hookloop.runs.files import write_text
from hookloop.runs.layout import RunDir
from hookloop.runs.reading import read_json
from hookloop.runs.records import to_json

FILE = "tags.json"
LARGEST = 100_000
"""Bytes of the file that are read."""

MOST, LONGEST = 100, 100
"""How many tags a run may have, and how many characters each of them."""


@dataclass(frozen=True)
class Labels:
    """What people wrote down about a run.

    Attributes:
        tags: Words to find it by.
        note: A text.
    """

    tags: tuple[str, ...] = ()
    note: str = ""

    def with_config(self, config: Mapping[str, object]) -> Labels:
        """Return them together with ``tags`` and ``notes`` of the run's config.

        >>> Labels(("best",)).with_config({"tags": ["baseline"], "notes": "first"})
        Labels(tags=('baseline', 'best'), note='first')
        """
        found = config.get("tags") or []
        own = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        tags = dict.fromkeys([*(one for one in own if isinstance(one, str)), *self.tags])
        return Labels(tuple(tags), self.note or str(config.get("notes") or ""))


def read_labels(run: RunDir) -> Labels:
    """Return the tags and the note of a run; empty if their file is missing or damaged."""
    try:
        data = read_json(run.path / FILE, LARGEST)
    except (OSError, ValueError):
        return Labels()
    if not isinstance(data, dict):
        return Labels()
    tags, note = data.get("tags"), data.get("note")
    listed = [one for one in tags if isinstance(one, str)] if isinstance(tags, list) else []
    return Labels(tuple(dict.fromkeys(listed))[:MOST], note if isinstance(note, str) else "")


def add_tags(run: RunDir, tags: Iterable[str]) -> Labels:
    """Add tags to a run."""
    old, new = read_labels(run), [check_tag(tag) for tag in tags]
    return _write(run, Labels(tuple(dict.fromkeys([*old.tags, *new])), old.note))


def remove_tags(run: RunDir, tags: Iterable[str]) -> Labels:
    """Remove tags from a run; one that it does not have is rejected."""
    old, gone = read_labels(run), set(tags)
    if missing := sorted(gone - {*old.tags}):
        has = ", ".join(old.tags) or "none"
        raise HookloopError(f"'{run.path}' has no tag '{missing[0]}'. Its tags are: {has}.")
    return _write(run, Labels(tuple(tag for tag in old.tags if tag not in gone), old.note))


def set_note(run: RunDir, text: str) -> Labels:
    """Replace the note of a run."""
    return _write(run, Labels(read_labels(run).tags, text))


def set_labels(run: RunDir, tags: Iterable[str], note: str) -> Labels:
    """Replace the tags and the note of a run."""
    return _write(run, Labels(tuple(dict.fromkeys(map(check_tag, tags))), note))


def check_tag(tag: str) -> str:
    """Return a tag, if it is one: a word, so that it can be listed and filtered by."""
    if not tag or len(tag) > LONGEST or not tag.isprintable() or any(c in tag for c in ", =<>!"):
        raise HookloopError(
            f"{tag[:LONGEST]!r} is not a tag: write one word, without comma, space, =, <, > or !."
        )
    return tag


def open_run(path: Path) -> RunDir:
    """Return the run in a directory.

    Raises:
        HookloopError: If there is none.
    """
    run = RunDir(path)
    if not path.is_dir() or not run.can_be_continued():
        raise HookloopError(f"'{path}' is not the directory of a run.")
    return run


def _write(run: RunDir, labels: Labels) -> Labels:
    if len(labels.tags) > MOST:
        raise HookloopError(f"A run has at most {MOST} tags.")
    content = {"tags": list(labels.tags), "note": labels.note}
    text = to_json(content, indent=1) + "\n"
    if len(text.encode()) > LARGEST:
        raise HookloopError(f"Tags and note have at most {LARGEST:,} bytes.")
    write_text(run.path / FILE, text)
    return labels
