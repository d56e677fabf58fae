"""Where a metric of a run comes from: who wrote it, from what, when, and who reads it.

Everything is read from the files of the run: its timetable, its config and its metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import cast

from hookloop.errors import HookloopError, nearest
from hookloop.runs.config_values import flatten, read_config
from hookloop.runs.layout import RunDir
from hookloop.runs.metrics_file import records
from hookloop.runs.policy import EPOCH, best_of, is_of_machine
from hookloop.runs.reading import read_json
from hookloop.runs.series import Column, history

PHASES = ("train", "val", "test")
OUTPUTS = ("Write", "Show", "Log")
"""What the classes begin with that pass every metric on."""


@dataclass(frozen=True)
class Actor:
    """A hook that writes or reads a metric.

    Attributes:
        hook: Its name.
        type: Its class.
        points: Where it acts, each with its interval, if it has one.
        how: What it declares: the name, or the pattern that it matches.
    """

    hook: str
    type: str
    points: Mapping[str, str | None]
    how: str


@dataclass(frozen=True)
class Explanation:
    """Where a metric comes from.

    Attributes:
        name: The metric.
        origin: What it is made of, in a sentence.
        writers: The hooks that put it into the metric store; empty if the engine does.
        readers: The hooks that declare that they read it.
        mentions: Other settings of the config that name it.
        outputs: The hooks that pass every metric on, by type.
        recorded: How many values the run has.
        first: The iteration of the first one.
        last: That of the last one.
        apart: The usual number of iterations between two of them.
        value: The last one.
        best: The best one, where the name tells which is better.
        is_of_machine: Whether it measures the machine, and differs between equal runs.
        afterwards: What has recorded it afterwards.
        basis: The metric of which this is the mean over an epoch.
    """

    name: str
    origin: str
    writers: Sequence[Actor] = ()
    readers: Sequence[Actor] = ()
    mentions: Mapping[str, object] = field(default_factory=dict)
    outputs: Sequence[str] = ()
    recorded: int = 0
    first: int | None = None
    last: int | None = None
    apart: int | None = None
    value: float | None = None
    best: float | None = None
    is_of_machine: bool = False
    afterwards: Sequence[str] = ()
    basis: str | None = None


def explain(run: RunDir, name: str) -> Explanation:
    """Return where a metric of a run comes from.

    Raises:
        HookloopError: If the run has no such metric, and no hook writes or reads it.
    """
    hooks = _hooks_of(run)
    known = history(run)
    column = known.get(name)
    basis = f"train/{name.removeprefix(EPOCH)}" if name.startswith(EPOCH) else None
    writers = list(_declaring(hooks, "writes", name))
    by_basis = list(_declaring(hooks, "writes", basis)) if basis is not None else []
    readers = list(_declaring(hooks, "reads", name))
    if column is None and not writers and not readers:
        names = [*known, *(str(one) for hook in hooks for one in _names(hook, "writes"))]
        raise HookloopError(
            f"'{run.path}' has no metric '{name}', and no hook writes or reads it."
            f"{nearest(name, [one for one in names if '*' not in one])}"
        )
    config = flatten(cast("Mapping[object, object]", read_config(run)))
    afterwards = list(_afterwards(run, name))
    return Explanation(
        name,
        _origin(name, writers, config, afterwards, basis),
        writers or by_basis,
        readers,
        {key: value for key, value in config.items() if value == name},
        sorted({str(one["type"]) for one in hooks if str(one["type"]).startswith(OUTPUTS)}),
        is_of_machine=is_of_machine(name, _machine(run)),
        afterwards=afterwards,
        basis=basis,
        **_facts(name, column),  # type: ignore[arg-type]
    )


def _origin(  # noqa: PLR0911 - a line for each origin
    name: str,
    writers: Sequence[Actor],
    config: Mapping[str, object],
    afterwards: Sequence[str],
    basis: str | None,
) -> str:
    if writers:
        return "a hook puts it into the metric store"
    if afterwards:
        return "it was recorded afterwards, by a replay"
    if basis is not None:
        return f"the mean of {basis} over the iterations of an epoch"
    phase, _, rest = name.partition("/")
    last = rest.rpartition("/")[2]
    if phase == "lr":
        return "the rate with which the optimizer has stepped, read by what writes the metrics"
    if phase == "train" and rest == "grad_norm":
        return f"the norm of the gradients before clipping (clip_norm: {config.get('clip_norm')})"
    if phase in PHASES and (rest == "loss" or last.endswith("_loss") or last == "loss"):
        when = "each update" if phase == "train" else "the batches of an evaluation, averaged"
        return f"the engine takes it from {when}{_from(config, ('loss', 'step'))}"
    if phase in ("val", "test"):
        found = _from(config, (f"metrics.{last}", "metrics"))
        return f"the engine computes it in the evaluation{found}"
    if phase == "train":
        return f"the step, or the model, returned it beside the loss{_from(config, ('step',))}"
    return "no hook declares that it writes it: a hook or the training has put it there by itself"


def _from(config: Mapping[str, object], keys: Sequence[str]) -> str:
    """Return what the config says about the first key that it has."""
    for key in keys:
        for exact in (key, f"{key}.type"):
            if config.get(exact) is not None:
                return f" ({key}: {config[exact]})"
        inner = {one: value for one, value in config.items() if one.startswith(f"{key}.") and value}
        if inner:
            shown = ", ".join(f"{one}: {value}" for one, value in list(inner.items())[:3])
            return f" ({shown})"
    return ""


def _facts(name: str, column: Column | None) -> dict[str, object]:
    if column is None or not column.iters:
        return {}
    values = column.at()
    iters = sorted(values)
    steps = Counter(after - before for before, after in pairwise(iters))
    best = best_of(name, column.values)
    return {
        "recorded": len(iters),
        "first": iters[0],
        "last": iters[-1],
        "apart": steps.most_common(1)[0][0] if steps else None,
        "value": values[iters[-1]],
        "best": None if best is None else best[1],
    }


def _afterwards(run: RunDir, name: str) -> Iterator[str]:
    said: dict[str, None] = {}
    for line in records(run.afterwards_file, is_lenient=True):
        by = line.get("by")
        if name in line and isinstance(by, Mapping):
            hooks = by.get("hooks")
            said[", ".join(map(str, hooks)) if isinstance(hooks, list) else str(hooks)] = None
    yield from said


def _machine(run: RunDir) -> list[str]:
    from hookloop.runs.reader import machine_metrics

    return list(machine_metrics(run))


def _hooks_of(run: RunDir) -> list[Mapping[str, object]]:
    """Return the timetable of a run; empty if it has none."""
    try:
        data = read_json(run.hooks_file)
    except (OSError, ValueError):
        return []
    hooks = data.get("hooks") if isinstance(data, Mapping) else None
    found = [one for one in hooks if isinstance(one, Mapping)] if isinstance(hooks, list) else []
    points: dict[str, list[str]] = {}
    cells = data.get("cells") if isinstance(data, Mapping) else None
    for cell in cells if isinstance(cells, list) else ():
        if isinstance(cell, Mapping):
            points.setdefault(str(cell.get("hook")), []).append(str(cell.get("point")))
    return [
        {**one, "points": points.get(str(one.get("name")), ()), "type": str(one.get("type"))}
        for one in found
    ]


def _names(hook: Mapping[str, object], which: str) -> list[str]:
    found = hook.get(which)
    return [str(one) for one in found] if isinstance(found, list) else []


def _declaring(hooks: Sequence[Mapping[str, object]], which: str, name: str) -> Iterator[Actor]:
    for hook in hooks:
        how = next((one for one in _names(hook, which) if fnmatchcase(name, one)), None)
        if how is None:
            continue
        every = hook.get("every")
        intervals = every if isinstance(every, Mapping) else {}
        points = cast("Sequence[str]", hook.get("points") or list(intervals))
        where = {
            str(one): None if intervals.get(one) is None else str(intervals[one]) for one in points
        }
        yield Actor(str(hook.get("name")), str(hook.get("type")), where, how)
