"""`ReportTrial`: report to a trial of Optuna, which may prune it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from hookloop.hooks.ending._watch_metric import WatchMetric

if TYPE_CHECKING:
    from hookloop.engine.run import Run

PRUNED = "pruned"
"""The reason with which a pruned run stops."""


class Trial(Protocol):
    """What this hook needs of ``optuna.Trial``."""

    def report(self, value: float, step: int) -> None:
        """Take the value of a step."""

    def should_prune(self) -> bool:
        """Return whether the trial is worth no more work."""


class ReportTrial(WatchMetric):
    """Report a metric to a trial after each validation, and stop the run if it is pruned.

    The step is the number of completed iterations. A pruned run ends as ``stopped`` with the reason
    ``"pruned"``, with its files closed; your objective should then raise ``optuna.TrialPruned``. On
    many ranks the trial of the first one counts, and the others may have None. Optuna keeps the
    first value of a step, so a resumed run may report again.

    Args:
        trial: The trial that the objective receives.
        metric: What to report: ``"val/loss"``.

    Example:
        >>> from types import SimpleNamespace
        >>> from hookloop.testing import tiny_trainer
        >>> trial = SimpleNamespace(report=lambda value, step: None, should_prune=lambda: True)
        >>> outcome = tiny_trainer(ReportTrial(trial, "val/loss")).train()
        >>> outcome.reason == "pruned"  # In an objective: raise optuna.TrialPruned
        True
    """

    takes_part_in_training = True
    sends = True

    def __init__(self, trial: Trial | None, metric: str = "val/loss") -> None:
        super().__init__(metric)
        self.trial = trial

    def look(self, run: Run, value: float) -> None:
        is_pruned = False
        if self.trial is not None and run.world.is_main:
            self.trial.report(value, run.progress.iter)
            is_pruned = self.trial.should_prune()
        if run._internals.ranks.share(is_pruned):
            run.stop(PRUNED, everywhere=True)
