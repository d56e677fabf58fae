"""``hookloop trace``: every firing of some iterations, as a tree and as a file for Perfetto."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_error, print_text, reporting
from hookloop.cli.shared.table import show_table

if TYPE_CHECKING:
    from hookloop.update.tracing import Trace

TOO_DEAR = 1


@click.command("trace", short_help="See every firing of some iterations.")
@config_and_overrides
@click.option(
    "--iters", default="20", show_default=True, metavar="N|A:B", help="How many, or which of a run."
)
@click.option("--writes", is_flag=True, help="Find out what each call changes, which takes longer.")
@click.option(
    "--cost",
    "budgets",
    multiple=True,
    metavar="[HOOK=]SHARE",
    help='What a hook may cost: "1 %" for all together, RecordNorms="0.5 %" for one.',
)
@click.option(
    "--to",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a file for Perfetto and chrome://tracing.",
)
@reporting
def command(
    config: Path,
    overrides: tuple[str, ...],
    iters: str,
    writes: bool,
    budgets: tuple[str, ...],
    to: Path | None,
) -> int:
    """Show every firing of some iterations of CONFIG, or of a run: point, hook, duration, writes.

    A config is trained in a directory that goes away, the iterations of a run are repeated.
    Iterations in which the same fired stand together. Hooks that never fired are named at the end.
    With --cost, the exit code is 1 if a hook costs more of the time than it may.
    """
    from hookloop.config.tracing import trace
    from hookloop.hooks.measuring.record_hook_times import parse_budgets
    from hookloop.runs.files import write_text
    from hookloop.runs.records import to_json
    from hookloop.update.tracing import over_budget

    most = parse_budgets(dict(_pair(text) for text in budgets))
    found = trace(config, overrides, iters=iters, writes=writes, tell=print_text)
    dear = list(over_budget(found, most))
    if to is not None:
        write_text(to, to_json(found.chrome()) + "\n")
    set_result(_describe(config, found) | {
        "over_budget": [{"hook": n, "share": s, "most": m} for n, s, m in dear],
        "file": None if to is None else str(to),
    })  # fmt: skip
    for line in found.tree():
        print_text(line)
    _show_costs(found)
    for one in found.silent:
        print_text(f"never fired: {one.hook} ({one.reason})")
    for name, reason in found.left_out.items():
        print_text(f"left out: {name} ({reason})")
    if to is not None:
        print_text(f"written: {to}, for https://ui.perfetto.dev and chrome://tracing.")
    for name, share, limit in dear:
        print_error(f"{name} cost {share:.2%} of the time, and may cost {limit:.2%}.")
    return TOO_DEAR if dear else 0


def _pair(text: str) -> tuple[str, str]:
    name, sign, share = text.partition("=")
    return (name, share) if sign else ("", text)


def _describe(source: Path, found: Trace) -> dict[str, object]:
    return {
        "command": "trace",
        "runs": [str(source)],
        "iters": [found.first, found.last],
        "firings": [asdict(one) for one in found.firings],
        "costs": [
            {"hook": name, "calls": calls, "seconds": took, "share": share}
            for name, (calls, took, share) in found.costs().items()
        ],
        "never_fired": [asdict(one) for one in found.silent],
        "left_out": dict(found.left_out),
        "seconds": {"predicted": None, "taken": found.seconds - found.warm},
    }


def _show_costs(found: Trace) -> None:
    rows = [
        (name, str(calls), f"{took * 1e3:.3f}", f"{share:.2%}")
        for name, (calls, took, share) in found.costs().items()
    ]
    if rows:
        print_text("")
        show_table(("hook", "calls", "ms", "of the time"), rows, wide=("hook",))
