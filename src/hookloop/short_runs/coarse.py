"""How far two recorded runs are known to be equal, without training: what both have written.

Fingerprints are read in order and give the first that differs. Among checkpoints a binary search
finds a pair that is equal and a later one that is not: it assumes that runs that have parted stay
so, which the repetition of the window between them confirms or not. Metrics only say how early
the runs must have parted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.errors import CheckpointError
from hookloop.every import count_of
from hookloop.runs.fingerprints import PARTS, present_fingerprints
from hookloop.runs.interventions import read_interventions
from hookloop.runs.layout import RunDir
from hookloop.runs.same_metrics import compare_metrics
from hookloop.short_runs.route import completed, is_of_branch, present_branch

STATE = ("model", "averaged", "optimizers", "scaler", "rng", "gradients", "buffers")
"""Parts of a checkpoint that equal runs have equal, whatever hooks they have."""


@dataclass(frozen=True)
class Window:
    """What is to be repeated.

    Attributes:
        first: The first iteration.
        last: The last one.
        known: What was seen to differ at the last one, or not before the first; empty if nothing.
        compared: What was read, for people.
    """

    first: int
    last: int
    known: str = ""
    compared: tuple[str, ...] = ()


def find_window(one: RunDir, other: RunDir) -> Window:
    """Return the iterations in which two runs part, as far as their files tell.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If one is damaged.
    """
    done = min(completed(run, present_branch(read_interventions(run))) for run in (one, other))
    window = Window(1, done)
    for narrow in (_by_metrics, _by_fingerprints, _by_checkpoints):
        window = narrow(one, other, window)
    return window


def _by_metrics(one: RunDir, other: RunDir, window: Window) -> Window:
    if not (one.metrics_file.is_file() and other.metrics_file.is_file()):
        return window
    found = compare_metrics(one.path, other.path)
    compared = (*window.compared, count_of(found.numbers, "number") + " of the metrics")
    # A validation at the same iteration is no closer.
    early = [each for each in found.differences if 1 <= each.iter <= window.last]
    if not early:
        return replace(window, compared=compared)
    return replace(window, last=early[0].iter, known=str(early[0]), compared=compared)


def _by_fingerprints(one: RunDir, other: RunDir, window: Window) -> Window:
    both = [present_fingerprints(run) for run in (one, other)]
    common = sorted(both[0].keys() & both[1].keys())
    if not common:
        return window
    compared = (*window.compared, count_of(len(common), "fingerprint"))
    first = window.first
    for number in common:
        ours, theirs = both[0][number], both[1][number]
        unlike = [
            key for key in PARTS if key in ours and key in theirs and ours[key] != theirs[key]
        ]
        if unlike:
            if number > window.last:
                break
            known = f"the fingerprints of iteration {number}: {', '.join(unlike)}"
            return Window(first, number, known, compared)
        first = number + 1 if number < window.last else first
    return replace(window, first=first, compared=compared)


def _by_checkpoints(one: RunDir, other: RunDir, window: Window) -> Window:
    both = [_checkpoints(run) for run in (one, other)]
    common = sorted(
        number for number in both[0].keys() & both[1].keys()
        if window.first <= number <= window.last
    )  # fmt: skip
    read = 0
    first, last, known = window.first, window.last, window.known
    low, high = 0, len(common)
    while low < high:
        middle = (low + high) // 2
        number = common[middle]
        unlike = _unlike(both[0][number], both[1][number])
        if unlike is None:  # One of them cannot be read.
            del common[middle]
            high = min(high, len(common))
            continue
        read += 1
        if unlike:
            high, last, known = middle, number, f"{both[0][number].name}: {unlike}"
        else:
            # Also where it is the last iteration of all: then there is nothing left to repeat.
            low, first = middle + 1, number + 1
    if not read:
        return window
    compared = (*window.compared, count_of(read, "pair") + " of checkpoints")
    return Window(first, last, known, compared)


def _checkpoints(run: RunDir) -> dict[int, Saved]:
    lines = present_branch(read_interventions(run))
    bounds = [line for line in lines if line["what"] in ("start", "rewind")]
    store = CheckpointStore(str(run.path))
    return {
        one.iter: replace(one, location=store.location)
        for one in store.index.entries.values()
        if one.is_resumable and one.kind == "periodic" and is_of_branch(one, bounds)
    }


def _unlike(one: Saved, other: Saved) -> str | None:
    """Return how two checkpoints differ; empty if they do not, None if one cannot be read."""
    try:
        states = [CheckpointStore(saved.location).load(saved.name) for saved in (one, other)]
    except CheckpointError:
        return None
    return "; ".join(str(each) for each in compare(*map(_state, states))[:3])


def _state(checkpoint: Mapping[str, object]) -> dict[str, object]:
    found = {key: checkpoint[key] for key in STATE if key in checkpoint}
    undeclared = cast("Mapping[str, object]", checkpoint.get("undeclared") or {})
    return found | {"undeclared": undeclared.get("parameters")}
