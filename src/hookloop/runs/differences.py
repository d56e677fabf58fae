"""Compare two runs by their files: config, environment, source and metrics."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Collection, Mapping

from hookloop.runs.config_values import flatten, read_config
from hookloop.runs.layout import RunDir
from hookloop.runs.lineage import common_past
from hookloop.runs.policy import NOT_SHOWN, best_of, is_of_machine
from hookloop.runs.reader import machine_metrics, summarize
from hookloop.runs.reading import opened_to_read, read_json
from hookloop.runs.series import Column, history

Pair = list[object]
Section = dict[str, Pair]

OF_THE_PROCESS = {"time", "pid", "started", "written", "date", "run_dir"}
"""Entries of an environment that differ between any two starts."""

NOT_DECISIVE = {"command", "argv", "cwd", "directory"}
"""Entries that are shown and do not count as a difference."""

MOST_FILES = 100_000
_PACKAGE = re.compile(r"([\w.-]+)==(.+)")


def compare_runs(one: RunDir, other: RunDir) -> dict[str, object]:
    """Return what differs between two runs, by section; values come in pairs.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If a file is damaged.
    """
    begun = common_past(one, other)
    columns: list[dict[str, Column]] = [history(run, afterwards=False) for run in (one, other)]
    if begun is not None:  # Until then they are one run.
        columns = [_after(begun, of_run) for of_run in columns]
    relatives = {} if begun is None else {"relatives": {"from": begun}}
    return {
        **relatives,
        "run": _compare_counters(one, other),
        "config": differing(*(_config(run) for run in (one, other))),
        "environment": differing(*(read_environment(run) for run in (one, other))),
        "source": differing(*(read_source(run) for run in (one, other))),
        "metrics": compare_metrics(
            columns[0],
            columns[1],
            {*machine_metrics(one), *machine_metrics(other)},
        ),
    }


def is_equal(found: Mapping[str, object]) -> bool:
    """Return whether two runs are equal, as far as `compare_runs` and others have found."""
    for name, section in found.items():
        if not isinstance(section, Mapping):
            continue
        if name == "relatives":
            continue
        if name == "metrics":
            if section["first_difference"] or section["only"]:
                return False
        elif any(str(key).rpartition(".")[2] not in NOT_DECISIVE for key in section):
            return False
    return True


def differing(one: Mapping[str, object], other: Mapping[str, object]) -> Section:
    """Return the keys with different values, with both of them; None for one that is missing.

    >>> differing({"a": 1, "b": 2}, {"a": 1, "b": 3})
    {'b': [2, 3]}
    """
    keys = dict.fromkeys([*one, *other])
    pairs = {key: [one.get(key), other.get(key)] for key in keys}
    return {key: pair for key, pair in pairs.items() if repr(pair[0]) != repr(pair[1])}


def _compare_counters(one: RunDir, other: RunDir) -> Section:
    runs = [summarize(run) for run in (one, other)]
    names = ("status", "epochs", "iters", "ranks")
    return differing(*({name: getattr(run, name) for name in names} for run in runs))


def _after(begun: int, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return what comes after an iteration."""
    later = {}
    for name, column in columns.items():
        pairs = zip(column.iters, column.values, strict=True)
        kept = [(iteration, value) for iteration, value in pairs if iteration > begun]
        if kept:
            later[name] = Column([one for one, _ in kept], [value for _, value in kept])
    return later


def _config(run: RunDir) -> dict[str, object]:
    config = read_config(run)
    return {key: one for key, one in config.items() if key.partition(".")[0] not in NOT_SHOWN}


# --- environment and source -----------------------------------------------------------------------


def read_environment(run: RunDir) -> dict[str, object]:
    """Return the environment of a run's last start by key; {} if it was not written down."""
    try:
        data = read_json(run.path / "environment.json")
    except FileNotFoundError:
        return {}
    if not isinstance(data, dict):
        raise ValueError(f"'{run.path / 'environment.json'}' is not an environment")
    starts = data.pop("starts", None)
    last = starts[-1] if isinstance(starts, list) and starts else {}
    flat = flatten(_named({**data, **(last if isinstance(last, dict) else {"start": last})}))
    return {key: one for key, one in flat.items() if key.rpartition(".")[2] not in OF_THE_PROCESS}


def _named(tree: Mapping[object, object]) -> dict[object, object]:
    """Return a tree in which lists of ``name==version`` are mappings, so that each is compared."""
    named: dict[object, object] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            named[key] = _named(value)
        elif isinstance(value, list) and value:
            found = [_PACKAGE.fullmatch(one) if isinstance(one, str) else None for one in value]
            whole = [match for match in found if match is not None]
            named[key] = {m[1]: m[2] for m in whole} if len(whole) == len(value) else value
        else:
            named[key] = value
    return named


def read_source(run: RunDir) -> dict[str, object]:
    """Return a checksum of each source file that a run has kept, and its commit."""
    found: dict[str, object] = {}
    git = run.path / "git.txt"
    if git.is_file():
        with opened_to_read(git) as file:
            found["git commit"] = file.read(400).decode("utf-8", "replace").split(" ")[0].strip()
    archive = run.path / "source.zip"
    if archive.is_file():
        with opened_to_read(archive) as file:
            try:
                # Only the list of files is read: nothing is unpacked.
                entries = zipfile.ZipFile(file).infolist()
            except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
                raise ValueError(f"'{archive}' is damaged: {error}") from error
        for entry in entries[:MOST_FILES]:
            found[entry.filename] = f"{entry.file_size} bytes, {entry.CRC:08x}"
    return found


# --- metrics --------------------------------------------------------------------------------------


def compare_metrics(
    one: Mapping[str, Column], other: Mapping[str, Column], machine: Collection[str] = ()
) -> dict[str, object]:
    """Compare metrics at equal iterations, but for those that measure the machine.

    Args:
        one: The metrics of the first run.
        other: Those of the second.
        machine: Names and patterns that the runs declare as measuring the machine.

    Returns:
        ``first_difference``: the first iteration at which a metric differs, with its values;
        ``metrics``: each metric at the last iteration that both have, its best values, and where
        the two are farthest apart; ``only``: those that one run alone has.
    """
    kept = [name for name in {**one, **other} if not is_of_machine(name, machine)]
    names = [name for name in kept if name in one and name in other]
    compared = {name: _compare_metric(name, one[name], other[name]) for name in names}
    only = {
        "first": [name for name in kept if name not in other],
        "second": [name for name in kept if name not in one],
    }
    firsts = [found for metric in compared.values() if (found := metric.pop("first"))]
    return {
        "first_difference": min(firsts, key=lambda found: int(str(found["iter"])), default=None),
        "metrics": compared,
        "only": {label: names for label, names in only.items() if names},
    }


def _compare_metric(name: str, one: Column, other: Column) -> dict[str, dict[str, object] | None]:
    ours, theirs = one.at(), other.at()
    common = sorted(ours.keys() & theirs.keys())
    apart = [iteration for iteration in common if not _same(ours[iteration], theirs[iteration])]

    def at(iteration: int) -> dict[str, object]:
        return {"iter": iteration, "values": [ours[iteration], theirs[iteration]]}

    def distance(iteration: int) -> float:
        found = abs(ours[iteration] - theirs[iteration])
        return math.inf if math.isnan(found) else found

    farthest = max(apart, key=distance, default=None)
    bests = [best_of(name, column.values) for column in (one, other)]
    return {
        "first": {"metric": name, **at(apart[0])} if apart else None,
        "last": at(common[-1]) if common else None,
        "best": {"values": [best[1] if best else None for best in bests]},
        "farthest": (
            None if farthest is None else at(farthest) | {"difference": distance(farthest)}
        ),
    }


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
