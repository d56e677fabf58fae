"""``fingerprints.jsonl``: what a training was, bit by bit, each line chained to the one before.

The last link, the root, stands for the whole file. It shows that nothing was changed, left out or
put in another order only to somebody who knew it before.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from hookloop.runs.files import write_text
from hookloop.runs.layout import RunDir
from hookloop.runs.metrics_file import records
from hookloop.runs.records import to_json

_log = logging.getLogger("hookloop")

CHAIN, PREVIOUS = "chain", "previous"
FIRST = "0" * 16
"""What the first line is chained to."""

PARTS = ("loss", "weights", "gradients", "buffers", "optimizers", "samples", "generators")
"""What a line may say, in the order in which they follow from each other in an iteration."""


def link(line: Mapping[str, object]) -> str:
    """Return the link of a line, which names the one before it.

    >>> link({"iter": 50, "previous": FIRST}) == link({"iter": 51, "previous": FIRST})
    False
    """
    held = {name: value for name, value in line.items() if name != CHAIN}
    return blake2b(to_json(held).encode(), digest_size=8).hexdigest()


def read_fingerprints(run: RunDir) -> list[dict[str, object]]:
    """Return the lines of a run, without those that are damaged; empty if there are none."""
    found = records(run.fingerprints_file, is_lenient=True)
    return [one for one in found if type(one.get("iter")) is int]


def present_fingerprints(run: RunDir) -> dict[int, dict[str, object]]:
    """Return the lines by iteration; of several branches, those of the present one."""
    found: dict[int, dict[str, object]] = {}
    for line in read_fingerprints(run):
        now = int(str(line["iter"]))
        # The run went back, and made these iterations again.
        for later in [one for one in found if one >= now]:
            del found[later]
        found[now] = line
    return found


def broken_link(lines: Sequence[Mapping[str, object]]) -> Mapping[str, object] | None:
    """Return the first line that does not follow from the one before it; None if all do."""
    before = lines[0].get(PREVIOUS) if lines else None
    for line in lines:
        if line.get(PREVIOUS) != before or line.get(CHAIN) != link(line):
            return line
        before = line[CHAIN]
    return None


def different_parts(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """Return in which parts two lines of the same iteration differ, as far as both have them."""
    return [
        name
        for name in PARTS
        if one.get(name) is not None and other.get(name) is not None and one[name] != other[name]
    ]


def cut_fingerprints(path: Path, count: int | None, iteration: int) -> tuple[int, str | None]:
    """Remove the lines that a resumed run will write again.

    Args:
        path: The file.
        count: How many lines there were at the checkpoint, if that is known.
        iteration: The iterations completed in it.

    Returns:
        How many lines are left, and the link of the last one.
    """
    if not path.is_file():
        return 0, None
    kept: list[dict[str, object]] = []
    for line in records(path, is_lenient=True):
        now = line.get("iter")
        if (type(now) is int and now <= iteration) if count is None else len(kept) < count:
            kept.append(line)
    text = "".join(f"{to_json(line)}\n" for line in kept)
    if text.encode() != path.read_bytes():
        write_text(path, text)
    last = kept[-1].get(CHAIN) if kept else None
    return len(kept), last if isinstance(last, str) else None
