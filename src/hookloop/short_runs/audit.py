"""Check that a run is what it says: its files among each other, and some stretches computed again.

It proves nothing about the data, about other runs that were not shown, or about edits that are
consistent with the program.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb
from pathlib import Path
from time import perf_counter
from typing import cast

from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.errors import CheckpointError, HookloopError
from hookloop.runs.config_values import flatten, is_whole, read_config
from hookloop.runs.fingerprints import CHAIN, broken_link, read_fingerprints
from hookloop.runs.identity import read_identity
from hookloop.runs.interventions import last_start, read_interventions
from hookloop.runs.layout import RunDir
from hookloop.runs.metrics_file import STAMPS, records
from hookloop.runs.moved_settings import moved_key
from hookloop.runs.policy import NOT_COMPARED
from hookloop.short_runs.replay import Replay
from hookloop.short_runs.route import ReplayError, completed, find_routes, present_branch

SHARES = (0.01, 0.05, 0.2)
"""Parts of a run for which it is said how likely an edit of so many stretches is found."""


@dataclass(frozen=True)
class Segment:
    """A stretch between two neighbouring checkpoints, computed again.

    Attributes:
        first: Its first iteration.
        last: Its last one.
        result: ``"held"``, ``"failed"`` or ``"not audited"``.
        what: The first difference, or why it could not be computed again.
        checked: How many things of it were compared.
    """

    first: int
    last: int
    result: str
    what: str = ""
    checked: int = 0


@dataclass(frozen=True)
class Audit:
    """What an audit has shown.

    Attributes:
        problems: Where the files contradict each other, found without computing.
        segments: The stretches that were computed again.
        count: How many stretches there are.
        chance: How likely an edit of one stretch, and of a part of all, is among those computed.
        root: The last link of the fingerprints, if there are any.
        seconds: How long it took.
    """

    problems: Sequence[str]
    segments: Sequence[Segment]
    count: int
    chance: Mapping[str, float]
    root: str | None
    seconds: float

    @property
    def failed(self) -> list[Segment]:
        """The stretches that are not what the run says."""
        return [one for one in self.segments if one.result == "failed"]

    @property
    def skipped(self) -> list[Segment]:
        """The stretches that could not be computed again."""
        return [one for one in self.segments if one.result == "not audited"]


def audit_run(
    run_dir: str | Path,
    replay: Callable[[int, int], Replay],
    *,
    segments: int,
    seed: int = 0,
    root: str | None = None,
    tell: Callable[[str], object] = str,
) -> Audit:
    """Check a run.

    Args:
        run_dir: The run.
        replay: Repeats iterations of it, from the first to the last one.
        segments: How many stretches between checkpoints to compute again, at least two: the first
            and the last are always among them.
        seed: Which of the others.
        root: The last link of its fingerprints, as somebody has noted it before.
        tell: Is told of each stretch.

    Raises:
        ReplayError: If nothing of it can be computed again.
    """
    begun, run = perf_counter(), RunDir(Path(run_dir))
    problems = list(_contradictions(run, root))
    stretches, saved = _stretches(run)
    for one in saved:
        problems += _problems_of(one, run)
    chosen = _choose(len(stretches), segments, seed)
    done = []
    for number in chosen:
        segment = _compute(replay, *stretches[number])
        tell(f"iterations {segment.first} to {segment.last}: {segment.result}")
        done.append(segment)
    lines = read_fingerprints(run)
    last = str(lines[-1].get(CHAIN)) if lines else None
    return Audit(
        problems, done, len(stretches), chances(len(stretches), len(chosen)), last,
        perf_counter() - begun,
    )  # fmt: skip


def chances(count: int, chosen: int) -> dict[str, float]:
    """Return how likely edits are found, of one stretch and of parts of all, wherever they are.

    >>> chances(10, 5)
    {'one': 0.5, '1 %': 0.5, '5 %': 0.5, '20 %': 0.778}
    """
    edited = {"one": 1, **{f"{share:.0%}".replace("%", " %"): share * count for share in SHARES}}
    return {
        name: round(1 - comb(count - max(1, round(m)), chosen) / comb(count, chosen), 3)
        for name, m in edited.items()
    }


def _choose(count: int, wanted: int, seed: int) -> list[int]:
    """Return stretches without repetition; nothing after the last one contradicts it."""
    ends = sorted({0, count - 1})
    between = range(1, count - 1)
    more = random.Random(seed).sample(between, min(len(between), max(0, wanted - len(ends))))
    return sorted({*ends, *more})


def _stretches(run: RunDir) -> tuple[list[tuple[int, int]], list[Saved]]:
    """Return the iterations between checkpoints of the present branch, and the checkpoints."""
    done = completed(run, present_branch(read_interventions(run)))
    if not done:
        raise ReplayError(f"'{run.path}' has no iteration to compute again.")
    longest = find_routes(run.path, done, done)[-1]
    saved = [one for one in longest.checkpoints if one.kind == "periodic"]
    if longest.checkpoint is not None:
        saved.append(longest.checkpoint)
    bounds = sorted({longest.begun, *(one.iter for one in saved), done})
    return [(one + 1, other) for one, other in pairwise(bounds)], saved


def _compute(replay: Callable[[int, int], Replay], first: int, last: int) -> Segment:
    try:
        found = replay(first, last)
    except HookloopError as error:
        return Segment(first, last, "not audited", str(error))
    if (different := found.difference) is not None:
        what = f"iteration {different.iter}, {different.what}: {different.difference}"
        return Segment(first, last, "failed", what, len(found.checked))
    if found.lines_apart:
        return Segment(first, last, "failed", found.lines_apart[0], len(found.checked))
    if not found.checked:
        return Segment(first, last, "not audited", "the run recorded nothing to compare with")
    return Segment(first, last, "held", "", len(found.checked))


# --- without computing ----------------------------------------------------------------------------


def _contradictions(run: RunDir, root: str | None) -> Iterator[str]:
    yield from _in_fingerprints(run, root)
    yield from _in_metrics(run)
    start = last_start(run)
    config = start.get("config") if start is not None else None
    if isinstance(config, Mapping) and is_whole(config):
        then = {moved_key(key): value for key, value in flatten(config).items()}
        now = read_config(run)
        for key in dict.fromkeys([*then, *now]):
            if key.partition(".")[0] not in NOT_COMPARED and then.get(key) != now.get(key):
                yield (
                    f"config.yaml is not what the run was started with: {key} was "
                    f"{then.get(key)!r} and is {now.get(key)!r}"
                )
                break


def _in_fingerprints(run: RunDir, root: str | None) -> Iterator[str]:
    lines = read_fingerprints(run)
    if (broken := broken_link(lines)) is not None:
        yield f"the chain of fingerprints.jsonl is broken at iteration {broken['iter']}"
    last = lines[-1].get(CHAIN) if lines else None
    try:
        summary = run.read_summary()
    except (OSError, ValueError):
        summary = {}
    noted = summary.get("root")
    if summary.get("status") == "completed" and noted is not None and noted != last:
        yield f"fingerprints.jsonl ends with the link {last}, and summary.json has {noted}"
    if root is not None and root != last:
        yield f"fingerprints.jsonl ends with the link {last}, and not with {root}"


def _in_metrics(run: RunDir) -> Iterator[str]:
    seen: set[tuple[object, ...]] = set()
    before = 0
    for line in records(run.metrics_file, is_lenient=True):
        now, phase = line.get("iter"), line.get("phase")
        if not isinstance(now, int) or phase == "test":
            continue
        if now < before:
            yield f"metrics.jsonl has iteration {now} after {before}"
            return
        before = now
        for name in line:
            place = (now, phase, line.get("span"), name)
            if name not in STAMPS and place in seen:
                yield f"metrics.jsonl has {name} of iteration {now} twice"
                return
            seen.add(place)


def _problems_of(saved: Saved, run: RunDir) -> Iterator[str]:
    """Yield what is wrong with a checkpoint by itself."""
    try:
        held = CheckpointStore(saved.location).load(saved.name)
    except CheckpointError as error:
        yield str(error)
        return
    done = cast("Mapping[str, object]", held["progress"]).get("iter")
    if done != saved.iter:
        yield f"'{saved.name}' is of iteration {done}, and is listed as one of {saved.iter}"
    own = read_identity(run)
    known = {own.run_id, own.parent.run_id if own.parent is not None else None}
    if (maker := held.get("run_id")) is not None and maker not in known:
        yield f"'{saved.name}' was saved by another run, {maker}"
