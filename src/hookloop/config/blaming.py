"""`blame`: which samples of an iteration of a run its loss comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hookloop.config.replaying import replay
from hookloop.errors import HookloopError
from hookloop.short_runs.blame import Blame, LookAtSamples
from hookloop.short_runs.replay import Replay


def blame(
    run_dir: str | Path,
    *,
    at: int,
    before: int = 5,
    gradients: bool = True,
    make: Callable[[Path], Mapping[str, object]] | None = None,
    anyway: bool = False,
    tell: Callable[[str], object] = str,
) -> Blame:
    """Return which samples of an iteration its loss comes from, the worst first.

    The iteration is repeated bit for bit, and looked at: the loss by rows of the real output, each
    sample alone in evaluation mode, the norm of its gradient.

    Args:
        run_dir: The run.
        at: The iteration.
        before: With how many iterations before it is compared.
        gradients: Whether to compute the norm of each sample's gradient, a backward pass for each.
        make: Returns the arguments of the Trainer of a script, given a directory; for a run without
            a config.
        anyway: Whether to repeat what cannot be exact.
        tell: Is told what is repeated, before the first iteration.

    Raises:
        ReplayError: If the iteration cannot be repeated exactly, with the reason.
        HookloopError: If nothing shows its samples.
    """
    return blame_and_replay(
        run_dir, at, before=before, gradients=gradients, make=make, anyway=anyway, tell=tell
    )[0]


def blame_and_replay(
    run_dir: str | Path,
    at: int,
    *,
    before: int,
    gradients: bool,
    make: Callable[[Path], Mapping[str, object]] | None = None,
    anyway: bool = False,
    tell: Callable[[str], object] = str,
) -> tuple[Blame, Replay]:
    """Do the same as `blame`; return what the replay has shown, too."""
    first = max(1, at - before)
    hook = LookAtSamples(first, at, gradients=gradients)
    found = replay(run_dir, at=(first, at), beside=[hook], make=make, anyway=anyway, tell=tell)
    result = hook.blame()
    if not result.samples:
        reasons = "; ".join(result.why_not) or "no loss was computed in it"
        raise HookloopError(f"Nothing shows the samples of iteration {at}: {reasons}.")
    return result, found
