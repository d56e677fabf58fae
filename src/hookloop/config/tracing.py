"""`trace`: train a few iterations of a config, or repeat those of a run, and see what fires."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hookloop.config.build import arguments
from hookloop.config.load import load
from hookloop.config.replaying import replay
from hookloop.runs.layout import RunDir
from hookloop.short_runs.route import parse_span
from hookloop.short_runs.short_run import short_run
from hookloop.update.tracing import Trace, Tracer


def trace(
    source: str | Path,
    overrides: Sequence[str] = (),
    *,
    iters: int | str = 20,
    writes: bool = False,
    make: Callable[[Path], Mapping[str, object]] | None = None,
    tell: Callable[[str], object] = str,
) -> Trace:
    """Return what fires in a training, who acts, and how long it takes.

    A config is trained in a directory that goes away; hooks that send or write elsewhere are left
    out. The iterations of a run are repeated as `replay` repeats them.

    Args:
        source: A config or a run.
        overrides: Changes of the config, each ``a.b=value``.
        iters: How many iterations, or those of a run: ``"1200:1210"``.
        writes: Whether to find out what each call changes, which takes longer than the calls.
        make: Returns the arguments of the Trainer of a script, given a directory.
        tell: Is told what is done.
    """
    path = Path(source)
    is_count = isinstance(iters, int) or ":" not in iters
    first, last = (1, int(iters)) if is_count else parse_span(iters)
    parse_span((first, last))
    tracer = Tracer(first=first, last=last, writes=writes)
    if path.is_dir() and RunDir(path).interventions_file.is_file() and not overrides:
        if is_count:
            from hookloop.runs.interventions import read_interventions
            from hookloop.short_runs.route import completed, present_branch

            run = RunDir(path)
            last = min(last, completed(run, present_branch(read_interventions(run))))
        found = replay(path, at=f"{first}:{last}", beside=tracer.hooks, make=make, tell=tell)
        left_out = found.left_out
    else:

        def given(directory: Path) -> Mapping[str, object]:
            if make is not None:
                return make(directory)
            return arguments(load(path, list(overrides)), run_dir=directory)

        short = short_run(given, iters=last, hooks=tracer.hooks, may_end_early=True)
        left_out = short.left_out
    done = tracer.close()
    done.left_out = dict(left_out)
    return done
