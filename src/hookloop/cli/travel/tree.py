"""``hookloop tree``: which runs came from which."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import click

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.every import count_of
from hookloop.runs.family import Branch, Rewind, read_tree
from hookloop.runs.shown import make_safe_line

WIDE = 40
"""The most characters of a value."""


@click.command("tree", short_help="Show which runs came from which.")
@click.argument("directory", type=click.Path(path_type=Path), default=Path("runs"))
@click.option("--metric", metavar="NAME", help="Show this metric; by default that of the best.")
@click.option("--all", "show_every", is_flag=True, help="Runs without a branch, too.")
@reporting
def command(directory: Path, metric: str | None, show_every: bool) -> int:
    """Show the runs of DIRECTORY as a tree: where each left its parent, and what was changed there.

    Where a run went back is a branch as well. DIRECTORY is by default runs/; a run's own directory
    shows that run.
    """
    if not directory.is_dir():
        raise click.BadParameter(f"there is no directory '{directory}'.", param_hint="DIRECTORY")
    begun = perf_counter()
    roots = read_tree(directory)
    shown = [one for one in roots if show_every or one.children or one.rewinds or one.parent]
    walked = [one for root in roots for one in root.walk()]
    set_result(
        {
            "command": "tree",
            "runs": [str(one.run.path) for one in walked],
            "iters": [0, max((one.run.iters for one in walked), default=0)],
            "exact": True,
            "why_not": [f"{one.run.name}: {one.note}" for one in walked if one.note],
            "seconds": {"predicted": None, "taken": perf_counter() - begun},
            "tree": [_record(one, metric) for one in (roots if show_every else shown)],
        }
    )
    for root in shown:
        print_text(_line(root, metric))
        for line in _below(root, metric):
            print_text(line)
    left = len(roots) - len(shown)
    if not shown:
        print_text(f"No run in '{directory}' has a branch: hookloop fork RUN@ITER makes one.")
    elif left:
        print_text(f"\n{count_of(left, 'run')} without a branch: --all shows them.")
    return 0


def _below(branch: Branch, metric: str | None, before: str = "") -> Iterator[str]:
    events: list[tuple[int, Branch | Rewind]] = [
        *((one.begun, one) for one in branch.rewinds),
        *((one.begun or 0, one) for one in branch.children),
    ]
    events.sort(key=lambda pair: pair[0])
    for number, (_, one) in enumerate(events, 1):
        is_last = number == len(events)
        start = before + ("└─ " if is_last else "├─ ")
        if isinstance(one, Rewind):
            yield start + _rewound(one)
            continue
        yield start + _line(one, metric)
        yield from _below(one, metric, before + ("   " if is_last else "│  "))


def _line(branch: Branch, metric: str | None) -> str:
    run = branch.run
    at = f"  from {branch.begun:,}" if branch.begun is not None else ""
    changed = "; ".join(_change(*one) for one in branch.changed)
    numbers = f"  {count_of(run.iters, 'iteration')}"
    value = _value(branch, metric)
    shown = f"  {value[0]} {value[1]:.4g}" if value is not None else ""
    note = f"  ({branch.note})" if branch.note else ""
    words = f"{run.name}{at}{': ' + changed if changed else ''}{numbers}{shown}  {run.status}{note}"
    return make_safe_line(words, 4 * WIDE)


def _rewound(one: Rewind) -> str:
    skipped = f", without the batches of {_listed(one.skip)}" if one.skip else ""
    verdict = f" [{one.verdict}]" if one.verdict else ""
    reason = f": {one.reason}" if one.reason else ""
    words = f"went back from {one.ended:,} to {one.begun:,}{skipped}{reason}{verdict}"
    return make_safe_line(words, 4 * WIDE)


def _listed(iters: tuple[int, ...]) -> str:
    few = [f"{one:,}" for one in iters[:4]]
    return ", ".join([*few, "..."] if len(iters) > len(few) else few)


def _change(key: str, old: object, new: object) -> str:
    if (
        isinstance(old, list | dict)
        or isinstance(new, list | dict)
        or (old is None and new is None)
    ):
        return key
    return f"{key} {_short(old)} -> {_short(new)}"


def _short(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= WIDE else f"{text[: WIDE - 1]}…"


def _value(branch: Branch, metric: str | None) -> tuple[str, float] | None:
    """Return the metric of a branch: the best value where one is watched, else the last one."""
    run = branch.run
    name = metric or (run.best.metric if run.best is not None else None)
    if name is None:
        name = next((one for one in ("val/loss", "train/loss") if one in run.metrics), None)
    if name is not None and name in run.bests:
        return f"best {name}", run.bests[name].value
    return (name, run.metrics[name]) if name is not None and name in run.metrics else None


def _record(branch: Branch, metric: str | None) -> dict[str, object]:
    run, value = branch.run, _value(branch, metric)
    parent = branch.parent
    return {
        "run": run.name,
        "path": str(run.path),
        "id": branch.run_id,
        "status": run.status,
        "iters": run.iters,
        "parent": parent.run_id if parent is not None else None,
        "begun": branch.begun,
        "changed": [{"key": key, "old": old, "new": new} for key, old, new in branch.changed],
        "metric": None if value is None else {"name": value[0], "value": value[1]},
        "rewinds": [
            {
                "from": one.ended, "to": one.begun, "skip": list(one.skip),
                "reason": one.reason, "verdict": one.verdict or None,
            }
            for one in branch.rewinds
        ],
        "note": branch.note,
        "children": [_record(one, metric) for one in branch.children],
    }  # fmt: skip
