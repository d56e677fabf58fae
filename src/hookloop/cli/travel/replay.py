"""``hookloop replay``: repeat iterations of a run bit for bit, and look at them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.look.completing import complete_run
from hookloop.cli.shared.arguments import aliases
from hookloop.cli.shared.output import current_output, set_result
from hookloop.cli.shared.report import print_error, print_text, reporting
from hookloop.errors import HookloopError, nearest
from hookloop.every import count_of

if TYPE_CHECKING:
    from hookloop.engine.hook import Hook
    from hookloop.engine.run import Run
    from hookloop.short_runs.replay import Replay

DIFFERENT, NOTHING = 1, 2


@click.command("replay", short_help="Repeat iterations of a run, and look at them.")
@aliases
@click.argument("run", type=click.Path(path_type=Path), shell_complete=complete_run)
@click.option(
    "--iter", "span", required=True, metavar="N|A:B", help="The iterations: 1234 or 1200:1300."
)
@click.option(
    "--hook",
    "hooks",
    multiple=True,
    metavar="HOOK",
    help="Record with this hook, written as in a config: RecordNorms, or {type: RecordNorms, ...}.",
)
@click.option("--at", "point", metavar="POINT", help="Open a shell at this mount point.")
@click.option("--check", is_flag=True, help="Fail if there is nothing to compare with.")
@click.option("--anyway", is_flag=True, help="Replay what cannot be exact.")
@reporting
def command(
    run: Path, span: str, hooks: tuple[str, ...], point: str | None, check: bool, anyway: bool
) -> int:
    """Repeat iterations of RUN bit for bit, from the nearest checkpoint before them.

    RUN may be trained meanwhile: only afterwards.jsonl is written there, with what --hook records.
    What RUN recorded of these iterations is compared, and its next checkpoint if the replay reaches
    one: the exit code is 1 at a difference, and 2 if it cannot be replayed exactly. Without --hook
    and --check, in a terminal, a shell opens after the last iteration, or at --at, with `run`. The
    config of RUN is code: what it names is imported and built.
    """
    from hookloop.config.replaying import replay
    from hookloop.short_runs.route import parse_span

    is_shown = sys.stdin.isatty() and sys.stdout.isatty() and not current_output().as_json
    shell: list[Hook] = []
    if point is not None or (is_shown and not hooks and not check):
        if not is_shown:
            raise HookloopError("--at opens a shell, which needs a terminal.")
        shell.append(_shell(point or "after_train_iter", parse_span(span)[1]))
    found = replay(run, at=span, hooks=hooks, anyway=anyway, beside=shell, tell=print_text)
    return _report(run, found, has_hooks=bool(hooks), needs_check=check)


def _report(run: Path, found: Replay, *, has_hooks: bool, needs_check: bool) -> int:
    different = found.difference
    set_result(
        {
            "command": "replay",
            "runs": [str(run)],
            "iters": [found.first, found.last],
            "exact": not found.why_not and different is None,
            "why_not": list(found.why_not),
            "from": found.origin,
            "checked": [
                {"what": one.what, "iter": one.iter, "equal": one.is_equal} for one in found.checked
            ],
            "difference": different and {"iter": different.iter, "what": different.difference},
            "recorded": list(found.recorded),
            "seconds": {"predicted": found.predicted, "taken": found.seconds},
        }
    )
    for reason in found.why_not:
        print_text(f"not exact: {reason}.")
    if found.recorded:
        print_text(
            f"recorded afterwards: {', '.join(found.recorded)}, in {run / 'afterwards.jsonl'}."
        )
    elif has_hooks:
        print_text("the hooks recorded no new metric in these iterations: see their every=.")
    if different is not None:
        where = f"iteration {different.iter}, in {different.what}"
        print_error(f"the replay differs first at {where}: {different.difference}")
        return DIFFERENT
    if found.checked:
        last = found.checked[-1]
        met = count_of(len(found.checked), "comparison")
        print_text(
            f"equal to the last bit: {met}, the last of {last.what} at iteration {last.iter}."
        )
        return 0
    print_text(
        f"iteration {found.last} is repeated; the run recorded nothing on the way to compare with."
    )
    return NOTHING if needs_check else 0


def _shell(point: str, iteration: int) -> Hook:
    """Return a hook that opens a shell at a point of an iteration."""
    import code

    from hookloop.engine.hook import FunctionHook
    from hookloop.engine.points import POINTS

    names = [one.name for one in POINTS]
    if point not in names:
        raise HookloopError(f"'{point}' is not a mount point.{nearest(point, names)}")
    within = names[names.index("before_train_iter") : names.index("after_train_iter")]
    done = iteration - 1 if point in within else iteration
    left = [True]

    def open_shell(run: Run, *_: object) -> None:
        if run.progress.iter == done and run.phase == "train" and left:
            left.clear()
            banner = f"{point} of iteration {iteration}: `run` is the run. Ctrl-D ends the replay."
            code.interact(banner, local={"run": run}, exitmsg="")

    return FunctionHook(open_shell, point)
