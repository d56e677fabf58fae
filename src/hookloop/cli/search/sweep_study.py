"""The trials of a sweep, kept by Optuna in a journal beside their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, Literal, cast

from hookloop.cli.search.sweep_space import Range, Scalar, Space, grid
from hookloop.runs.files import write_text
from hookloop.runs.policy import Rule
from hookloop.runs.reader import SWEEP
from hookloop.runs.records import to_json
from hookloop.writers.base import require

if TYPE_CHECKING:
    import optuna

JOURNAL = "study.journal"
NAME = "sweep"
DEVIATION = "deviation"
PROBLEM = "problem"

SAMPLERS = ("tpe", "random", "grid", "qmc")
DRAWING = ("tpe", "random")
"""Samplers that draw each trial; the others know from the journal which points are left."""

PRUNERS = ("none", "median", "halving", "hyperband")

State = Literal["running", "complete", "pruned", "fail", "waiting"]


@dataclass(frozen=True)
class Trial:
    """One trial, as it stands.

    Attributes:
        number: Its number, from 0.
        state: ``running`` until its result is known.
        chosen: The values that it was given.
        value: Its metric: the best of its run, or the mean over the folds.
        deviation: The standard deviation over the folds, if there are any.
        problem: Why it failed.
    """

    number: int
    state: State
    chosen: Mapping[str, Scalar]
    value: float | None = None
    deviation: float | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """The name of its run's directory."""
        return f"trial_{self.number:04d}"


class Study:
    """The trials of a sweep.

    Args:
        folder: The directory of the sweep, which has to exist.
        space: What is varied.
        rule: Whether more or less of the metric is better.
        sampler: How values are chosen.
        pruner: Which trials are cut short.
        seed: Seed of the choices.
    """

    def __init__(
        self,
        folder: Path,
        space: Space,
        *,
        rule: Rule,
        sampler: str = "tpe",
        pruner: str = "none",
        seed: int | None = None,
    ) -> None:
        self.folder = folder
        self.space = space
        self.rule = rule
        self.optuna = require_optuna()
        self._sampler, self._seed = sampler, seed
        self._study = self.optuna.create_study(
            storage=_storage(self.optuna, folder),
            study_name=NAME,
            direction="maximize" if rule == "greater" else "minimize",
            sampler=_sampler(self.optuna, sampler, space, seed),
            pruner=_pruner(self.optuna, pruner),
            load_if_exists=True,
        )

    def ask(self) -> Trial:
        """Begin a trial with values of its own."""
        if self._sampler in DRAWING:
            own = _seed_of_trial(self._seed, len(self._study.get_trials(deepcopy=False)))
            self._study.sampler = _sampler(self.optuna, self._sampler, self.space, own)
        asked = self._study.ask(_distributions(self.optuna, self.space))
        return Trial(asked.number, "running", asked.params)

    def optuna_trial(self, number: int) -> optuna.Trial:
        """Return the trial as Optuna's hooks use it, in the process that trains it."""
        found = next(one for one in self._study.get_trials(deepcopy=False) if one.number == number)
        return cast("optuna.Trial", self.optuna.Trial(self._study, found._trial_id))

    def complete(self, number: int, values: list[float]) -> None:
        """Record the result of a trial: one value, or one for each fold."""
        if len(values) > 1:
            self.optuna_trial(number).set_user_attr(DEVIATION, stdev(values))
        self._study.tell(number, mean(values))

    def prune(self, number: int) -> None:
        """Record that a trial was cut short."""
        self._study.tell(number, state=self.optuna.trial.TrialState.PRUNED)

    def fail(self, number: int, problem: str) -> None:
        """Record that a trial failed, and why."""
        self.optuna_trial(number).set_user_attr(PROBLEM, problem)
        self._study.tell(number, state=self.optuna.trial.TrialState.FAIL)

    def trials(self) -> list[Trial]:
        """List all trials in their order."""
        return [
            Trial(
                one.number,
                one.state.name.lower(),
                one.params,
                one.value if one.state.name == "COMPLETE" else None,
                one.user_attrs.get(DEVIATION),
                one.user_attrs.get(PROBLEM),
            )
            for one in self._study.get_trials(deepcopy=False)
        ]

    def best(self) -> Trial | None:
        """Return the best trial that was completed."""
        done = [one for one in self.trials() if one.value is not None]
        if not done:
            return None
        choose = max if self.rule == "greater" else min
        return choose(done, key=lambda one: one.value or 0.0)

    def write_summary(self, about: Mapping[str, object]) -> dict[str, object]:
        """Write ``sweep.json``, which can be read without Optuna, and return what it says."""
        best = self.best()
        summary = {
            **about,
            "best": None if best is None else best.number,
            "trials": [
                {
                    "number": one.number,
                    "state": one.state,
                    "value": one.value,
                    "deviation": one.deviation,
                    "params": dict(one.chosen),
                    "run": one.name,
                    "problem": one.problem,
                }
                for one in self.trials()
            ],
        }
        write_text(self.folder / SWEEP, to_json(summary, indent=2))
        return summary


def require_optuna() -> Any:  # noqa: ANN401 - a module that need not be installed
    """Import Optuna, or raise an error with the command that installs it."""
    module = require("optuna", "sweep", "hookloop sweep")
    module.logging.set_verbosity(module.logging.WARNING)
    return module


def _storage(module: Any, folder: Path) -> Any:  # noqa: ANN401
    backend = module.storages.journal.JournalFileBackend(str(folder / JOURNAL))
    return module.storages.JournalStorage(backend)


def _distributions(module: Any, space: Space) -> dict[str, Any]:  # noqa: ANN401
    kinds = module.distributions
    found: dict[str, Any] = {}
    for key, one in space.items():
        if not isinstance(one, Range):
            found[key] = kinds.CategoricalDistribution(one.values)
        elif one.is_whole:
            found[key] = kinds.IntDistribution(int(one.low), int(one.high), log=one.is_log)
        else:
            found[key] = kinds.FloatDistribution(one.low, one.high, log=one.is_log)
    return found


def _sampler(module: Any, name: str, space: Space, seed: int | None) -> Any:  # noqa: ANN401
    samplers = module.samplers
    if name == "grid":
        return samplers.GridSampler(grid(space), seed=seed)
    kinds = {
        "tpe": samplers.TPESampler,
        "random": samplers.RandomSampler,
        "qmc": samplers.QMCSampler,
    }
    return kinds[name](seed=seed)


def _seed_of_trial(seed: int | None, number: int) -> int | None:
    """Return the seed of one trial's choices.

    A sampler that began with the same seed whenever a sweep is continued would choose the values
    of the first trials again.
    """
    return None if seed is None else Random(f"{seed} {number}").getrandbits(32)


def _pruner(module: Any, name: str) -> Any:  # noqa: ANN401
    pruners = module.pruners
    kinds = {
        "none": pruners.NopPruner,
        "median": pruners.MedianPruner,
        "halving": pruners.SuccessiveHalvingPruner,
        "hyperband": pruners.HyperbandPruner,
    }
    return kinds[name]()
