"""Curves: any metrics of any runs, on a common axis, down-sampled; and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Literal

import numpy as np

from hookloop import HookloopError
from hookloop.runs import make_safe_line, read_starts, read_time, safe_cell
from hookloop_board.collection import Collection, Entry
from hookloop_board.metrics_file import MetricsFile, Points
from hookloop_board.run_view import totals_of
from hookloop_board.sampling import sample, to_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

Axis = Literal["iter", "epoch", "samples", "time", "relative"]
AXES: tuple[Axis, ...] = ("iter", "epoch", "samples", "time", "relative")

POINTS, MOST_POINTS = 1200, 20_000
MOST_CURVES = 2_000


class BadQuestion(HookloopError):
    """A question that cannot be answered as it is asked."""


@dataclass(frozen=True)
class Query:
    """What is asked for.

    Attributes:
        runs: The runs.
        metrics: The names of the metrics.
        axis: What the curves are drawn over.
        begin: Where the part begins.
        end: Where it ends.
        points: The most points of a curve.
        weight: How much a moving average keeps of what came before; 0 for none.
    """

    runs: Sequence[Entry]
    metrics: Sequence[str]
    axis: Axis = "iter"
    begin: float = -np.inf
    end: float = np.inf
    points: int = POINTS
    weight: float = 0.0


def curves_view(
    collection: Collection, query: Query, patience: float = math.inf
) -> dict[str, object]:
    """Return the answer to ``/api/curves``.

    After ``patience`` seconds of reading, it has what is read so far, and how much of all that is;
    the next question reads on.
    """
    if len(query.runs) * len(query.metrics) > MOST_CURVES:
        raise BadQuestion(f"These are more than {MOST_CURVES:,} curves: choose fewer.")
    curves: list[dict[str, object]] = []
    marks: list[dict[str, object]] = []
    shares: list[float] = []
    left_out: list[dict[str, object]] = []
    until = monotonic() + patience
    for entry in query.runs:
        file = collection.metrics(entry, until)
        shares.append(file.share)
        try:
            scale = _Scale(entry, file, query.axis)
        except _NoAxis as error:
            left_out.append({"run": entry.id, "text": str(error)})
            continue
        for name in query.metrics:
            own = file.points(name)
            parts = [*collection.past(entry, name, until), *([own] if own is not None else [])]
            if parts:
                points = Points.joined(parts)
                about = {"run": entry.id, "metric": name, "reading": file.reading}
                curves.append({**about, **_curve(points, scale, query)})
        marks += _marks(entry, scale, query)
    answer: dict[str, object] = {"axis": query.axis, "curves": curves, "marks": marks}
    if left_out:
        answer["left_out"] = left_out
    if any(share < 1 for share in shares):
        answer["reading"] = sum(shares) / len(shares)
    return answer


def _curve(points: Points, scale: _Scale, query: Query) -> dict[str, object]:
    size = min(max(query.points, 10), MOST_POINTS)
    part = (query.begin, query.end, query.weight)
    found = sample(scale.positions(points), points.values, size, *part)
    curve: dict[str, object] = {
        "total": found.total,
        "count": len(points.values),
        "x": to_list(found.x),
        "y": to_list(found.y),
        "nonfinite": [list(pair) for pair in found.nonfinite],
    }
    if found.low is not None and found.high is not None:
        curve |= {"min": to_list(found.low), "max": to_list(found.high)}
    if found.smooth is not None:
        curve["smooth"] = to_list(found.smooth)
    return curve


class _NoAxis(HookloopError):
    """A run has no such axis."""


class _Scale:
    """Turns the stamps of records into positions on an axis.

    Args:
        entry: The run.
        file: Its metrics.
        axis: The axis.
    """

    def __init__(self, entry: Entry, file: MetricsFile, axis: Axis) -> None:
        self.axis = axis
        self._entry = entry
        self._all = file.stamps()
        if axis == "epoch":
            self._bends = self._epoch_ends()
        elif axis == "relative":
            self._bends = self._starts()
        elif axis == "samples":
            self._per_iter = self._samples_per_iter()

    def positions(self, points: Points) -> Numbers:
        """Return where each point lies."""
        if self.axis == "iter":
            return points.iters
        if self.axis == "epoch":
            return np.interp(points.iters, *self._bends)
        if self.axis == "samples":
            return points.iters * self._per_iter
        if self.axis == "relative":
            times, offsets = self._bends
            place = np.clip(np.searchsorted(times, points.times, "right") - 1, 0, None)
            return points.times - times[place] + offsets[place]
        return points.times

    def at_iter(self, iteration: float) -> float | None:
        """Return where an iteration lies, from the records around it."""
        if self.axis == "iter" or not len(self._all.iters):
            return iteration if self.axis == "iter" else None
        positions = self.positions(self._all)
        order = np.argsort(self._all.iters, kind="stable")
        found = np.interp(iteration, self._all.iters[order], positions[order])
        return float(found) if np.isfinite(found) else None

    def _epoch_ends(self) -> tuple[Numbers, Numbers]:
        """Return iterations and the epochs that were completed by then, to interpolate between."""
        order = np.argsort(self._all.epochs, kind="stable")
        epochs, first = np.unique(self._all.epochs[order], return_index=True)
        # Of equal epochs, the least iteration is that of its end.
        ends = np.minimum.reduceat(self._all.iters[order], first) if len(first) else epochs
        pairs = zip(ends.tolist(), epochs.tolist(), strict=True)
        bends = {0.0: 0.0} | {end: epoch for end, epoch in pairs if epoch > 0}
        iters, total = sorted(bends), totals_of(self._entry)
        length = iters[-1] - iters[-2] if len(iters) > 1 else 0.0
        if not length and total[0] and total[1]:
            length = total[0] / total[1]
        if length:  # The epoch that has begun is as long as the last one.
            last = bends[iters[-1]]
            bends[iters[-1] + 1000 * length] = last + 1000
        places = sorted(bends)
        return np.array(places), np.array([bends[place] for place in places])

    def _starts(self) -> tuple[Numbers, Numbers]:
        """Return when the run was started, and the seconds trained before each start."""
        known = self._all.times[~np.isnan(self._all.times)]
        given = [read_time(one.get("time")) for one in read_starts(self._entry.home)]
        starts = sorted(one.timestamp() for one in given if one is not None)
        begun = self._entry.summary.started
        if not starts or (len(known) and starts[0] > known.min()):
            earliest = [begun.timestamp()] if begun else [float(known.min())] if len(known) else [0]
            starts = [*earliest, *starts]
        offsets = [0.0]
        for start, following in pairwise(starts):
            within = known[(known >= start) & (known < following)]
            offsets.append(offsets[-1] + (float(within.max()) - start if len(within) else 0.0))
        return np.array(starts), np.array(offsets)

    def _samples_per_iter(self) -> float:
        extra = self._entry.extra
        size, done, iters = (extra.get(name) for name in ("batch_size", "samples", "iter"))
        if isinstance(done, int) and isinstance(iters, int) and done > 0 and iters > 0:
            return done / iters
        if isinstance(size, int) and size > 0:
            return float(size)
        raise _NoAxis("It has not written how many samples an iteration has: choose iterations.")


def _marks(entry: Entry, scale: _Scale, query: Query) -> Iterator[dict[str, object]]:
    """Yield where a run was resumed or went back, and where it was changed on purpose."""
    found: list[tuple[object, str, str]] = [
        (one.get("iter"), "resume", f"resumed on {one.get('host') or 'a host'}")
        for one in read_starts(entry.home)
        if one.get("iter")
    ]
    parent = entry.summary.parent
    if parent is not None and parent.iter:
        changed = f" with {', '.join(parent.changed)} changed" if parent.changed else ""
        found.append((parent.iter, "change", f"left its parent{changed}"))
    changes = entry.extra.get("changes")
    for one in changes if isinstance(changes, list) else []:
        if isinstance(one, dict) and one.get("how") == "rewound":
            text = f"went back from iteration {one.get('old')} to {one.get('new')}"
            found.append((one.get("iter"), "rewind", text))
        elif isinstance(one, dict):
            text = f"{one.get('key')}: {one.get('old')} -> {one.get('new')}"
            found.append((one.get("iter"), "change", text))
    for iteration, kind, text in found:
        if isinstance(iteration, int) and 0 <= iteration < 1 << 53:
            x = scale.at_iter(iteration)
            if x is not None and query.begin <= x <= query.end:
                yield {"run": entry.id, "x": x, "kind": kind, "text": make_safe_line(text, 200)}


def curves_csv(collection: Collection, query: Query) -> Iterator[str]:
    """Yield the points of curves as CSV, all of them, in parts."""
    yield "run,metric,iter,epoch,time,value\n"
    is_whole = (query.begin, query.end) == (-np.inf, np.inf)
    for entry in query.runs:
        file = collection.metrics(entry)
        try:
            scale = None if is_whole else _Scale(entry, file, query.axis)
        except _NoAxis:  # It is not on the page either, which says why.
            continue
        for name in query.metrics:
            points = file.points(name)
            if points is None:
                continue
            chosen = np.arange(len(points.values))
            if scale is not None:
                positions = scale.positions(points)
                chosen = np.flatnonzero((positions >= query.begin) & (positions <= query.end))
            for begin in range(0, len(chosen), 10_000):
                yield _rows(entry, name, points, chosen[begin : begin + 10_000])


def _rows(entry: Entry, name: str, points: Points, chosen: NDArray[np.int64]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for place in chosen.tolist():
        writer.writerow(
            [
                safe_cell(make_safe_line(entry.name)),
                safe_cell(make_safe_line(name)),
                int(points.iters[place]),
                int(points.epochs[place]),
                _iso(float(points.times[place])),
                repr(float(points.values[place])),
            ]
        )
    return text.getvalue()


def _iso(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def parse_query(collection: Collection, given: Mapping[str, list[str]]) -> Query:
    """Read the parameters of a question.

    Raises:
        BadQuestion: If one of them is wrong.
    """
    axis = given.get("axis", ["iter"])[-1]
    if axis not in AXES:
        raise BadQuestion(f"axis must be one of {', '.join(AXES)}.")
    try:
        begin = float((given.get("from") or ["-inf"])[-1] or "-inf")
        end = float((given.get("to") or ["inf"])[-1] or "inf")
        points = int((given.get("points") or [str(POINTS)])[-1])
        weight = float((given.get("smooth") or ["0"])[-1])
    except ValueError as error:
        raise BadQuestion("from, to, points and smooth must be numbers.") from error
    if not 0 <= weight < 1:
        raise BadQuestion("smooth must be from 0 to below 1.")
    runs = [collection.entry(number) for number in dict.fromkeys(given.get("run", []))]
    metrics = list(dict.fromkeys(given.get("metric", [])))
    return Query(runs, metrics, axis, begin, end, points, weight)
