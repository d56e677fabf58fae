"""``hookloop bisect``: the first iteration and the first thing in it in which two runs part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hookloop.cli.look.completing import complete_run
from hookloop.cli.shared.arguments import aliases, chosen_aliases
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.errors import HookloopError

if TYPE_CHECKING:
    from hookloop.config.bisecting import Bisection
    from hookloop.short_runs.parting import Unlike

DIFFERENT = 1


@click.command("bisect", short_help="Find where two runs part, and why.")
@aliases
@click.argument("first", metavar="A", shell_complete=complete_run)
@click.argument("rest", metavar="[B] [KEY=VALUE]...", nargs=-1)
@click.option("--iters", metavar="A:B", help="Look at these iterations only.")
@click.option("--python", metavar="PATH", help="Run B with this interpreter.")
@click.option(
    "--env", "variables", multiple=True, metavar="NAME=VALUE", help="Set a variable for B."
)
@click.option("--threads", type=click.IntRange(min=1), help="Compute B with that many threads.")
@click.option(
    "--make",
    metavar="FILE.py:FUNCTION",
    help="For runs of a script: the function returns the arguments of its Trainer.",
)
@reporting
def command(
    first: str,
    rest: tuple[str, ...],
    iters: str | None,
    python: str | None,
    variables: tuple[str, ...],
    threads: int | None,
    make: str | None,
) -> int:
    """Find the first iteration, and the first thing in it, in which A and B part, and say why.

    A and B are runs or configs; RUN@COMMIT and CONFIG@COMMIT take the code of a commit. Without B
    it is A once more, with what KEY=VALUE, --python, --env and --threads change. The files of two
    runs tell about when they part; then both repeat these iterations, each in a process of its own.
    The exit code is 0 if nothing differs, 1 if something does, and 2 if a side cannot be repeated.
    Configs are code: what they name is imported and built.
    """
    from hookloop.config.bisecting import bisect

    second, settings = _divide(rest)
    found = bisect(
        first,
        second,
        iters=iters,
        settings=settings,
        python=python,
        variables=dict(_pair(text) for text in variables),
        threads=threads,
        make=make,
        alias=chosen_aliases(),
        tell=print_text,
    )
    set_result(describe(found))
    _show(found)
    return 0 if found.parted is None else DIFFERENT


def _divide(rest: tuple[str, ...]) -> tuple[str | None, list[str]]:
    settings = [text for text in rest if "=" in text]
    others = [text for text in rest if "=" not in text]
    if len(others) > 1:
        raise HookloopError(f"bisect compares two sides, and there are more: {', '.join(others)}.")
    return (others[0] if others else None), settings


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise HookloopError(f"--env {text!r}: write NAME=VALUE.")
    return name, value


def describe(found: Bisection) -> dict[str, object]:
    """Return what was found, with the names that --json has."""
    parted = found.parted
    return {
        "command": "bisect",
        "runs": list(found.sides),
        "iters": list(found.window),
        "exact": not found.notes,
        "why_not": list(found.notes),
        "parted": parted and {**_line(parted), "hook": found.hook},
        "setting": found.setting and _line(found.setting),
        "cause": found.cause or None,
        "reason": found.reason or None,
        "evidence": {
            "equal": list(found.equal),
            "unequal": {part: dict(keys) for part, keys in found.unequal.items()},
            "settings": [_line(one) for one in found.settings],
            "only": dict(found.only),
        },
        "compared": list(found.compared),
        "window": list(found.window),
        "replays": found.replays,
        "seconds": {"predicted": None, "taken": found.seconds},
    }


def _line(one: Unlike) -> dict[str, object]:
    return {
        "iter": one.iter,
        "line": one.line,
        "at": one.at,
        "kind": one.kind,
        "name": one.name,
        "values": list(one.values),
    }


def _show(found: Bisection) -> None:
    for note in found.notes:
        print_text(f"note: {note}")
    first, last = found.window
    compared = ", ".join(found.compared) or "nothing"
    if found.parted is None:
        print_text(f"no difference in iterations {first} to {last}, compared: {compared}.")
        for one in found.settings:
            print_text(f"a setting differs and changes no number: {_setting(one)}.")
        return
    print_text(f"they part in {found.parted}.")
    if found.equal:
        print_text(f"  equal before it: {', '.join(found.equal)}")
    print_text(f"  cause: {found.cause}. {found.reason[:1].upper()}{found.reason[1:]}.")
    others = [one for one in found.settings if one is not found.setting]
    for one in others[:3]:
        print_text(f"  a setting differs, too: {_setting(one)}")
    if found.only:
        shown = [f"{name} ({side})" for name, side in list(found.only.items())[:5]]
        print_text(f"  only one side has: {', '.join(shown)}")
    print_text(f"  compared: {compared}; {found.replays} repetitions")


def _setting(one: Unlike) -> str:
    return f"{one.kind} {one.name}, {one.values[0]} and {one.values[1]}, from iteration {one.iter}"
