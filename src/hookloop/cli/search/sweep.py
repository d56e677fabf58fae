"""``hookloop sweep``: train a config with many settings, and find the best."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.arguments import chosen_aliases, config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.cli.shared.table import show_table
from hookloop.errors import HookloopError

if TYPE_CHECKING:
    from hookloop.cli.search.sweep_space import Folds, Space
    from hookloop.cli.search.sweep_study import Study, Trial
    from hookloop.runs.policy import Rule

NO_RESULT = 1
INTERRUPTED = 128


@dataclass(frozen=True)
class Search:
    """How a sweep looks for the best: the options of the command line.

    Attributes:
        trials: How many trials to make; None where the grid or the folds decide.
        metric: What is compared.
        mode: Whether less or more of it is better; None leaves that to its name.
        sampler: How settings are chosen.
        pruner: Which trials are cut short.
        jobs: How many trials run at a time.
        seed: Seed of the choices.
    """

    trials: int | None
    metric: str
    mode: str | None
    sampler: str
    pruner: str
    jobs: int
    seed: int

    def rule(self) -> Rule:
        """Return whether more or less of the metric is better."""
        from hookloop.runs.policy import nearest_metric, rule_of

        if self.mode is not None:
            return "greater" if self.mode == "max" else "less"
        rule = rule_of(self.metric)
        if rule is None:
            raise HookloopError(
                f"--metric {self.metric}: is more of it better, or less?"
                f"{nearest_metric(self.metric)} Write --mode max or --mode min."
            )
        return rule

    def count(self, space: Space) -> int:
        """Return how many trials to make."""
        from hookloop.cli.search.sweep_space import combinations

        if self.trials is not None:
            return self.trials
        if self.sampler == "grid" or not space:
            return combinations(space)
        raise HookloopError("how many trials are to be made? Write --trials N.")


@click.command("sweep", short_help="Train a config with many settings, and find the best.")
@config_and_overrides
@click.option("--trials", type=click.IntRange(1), help="How many trials to make, in total.")
@click.option("--metric", default="val/loss", show_default=True, help="The metric to compare.")
@click.option(
    "--mode",
    type=click.Choice(["min", "max"]),
    help="Whether less or more is better; by default inferred from the metric's name.",
)
@click.option(
    "--sampler",
    type=click.Choice(["tpe", "random", "grid", "qmc"]),
    default="tpe",
    show_default=True,
    help="How to choose settings.",
)
@click.option(
    "--pruner",
    type=click.Choice(["none", "median", "halving", "hyperband"]),
    default="none",
    show_default=True,
    help="Which trials to cut short.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, help="How many trials run at a time; 1 by default."
)
@click.option(
    "--folds",
    metavar="KEY=COUNT",
    help="Train each trial COUNT times, with KEY = 0, 1, ..., for cross-validation.",
)
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Directory of the sweep.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for choosing settings.")
@reporting
def command(
    *,
    config: Path,
    overrides: tuple[str, ...],
    folds: str | None,
    folder: Path | None,
    **search: object,
) -> int:
    """Train CONFIG with many settings, each trial as a run of its own, and find the best.

    What varies is written like an override: optimizer.lr=log(1e-4,1e-2), dropout=uniform(0,0.5),
    model.width=[32,64], model.layers=int(1,4). Any other KEY=VALUE holds for all trials.

    The same command continues a sweep that was killed, including the trials that were running; more
    --trials make it longer. With --folds each trial trains COUNT times, and its value is the mean.
    """
    from hookloop.cli.search.sweep_space import parse_folds, split
    from hookloop.runs.layout import default_path

    space, fixed = split(overrides)
    over = parse_folds(folds) if folds is not None else None
    if not space and over is None:
        raise HookloopError(
            "there is nothing to vary: write, for example, optimizer.lr=log(1e-4,1e-2), "
            "model.width=[32,64], or --folds vars.fold=5."
        )
    sweep = Sweep(
        home=folder or default_path().parent / f"{config.stem}_sweep",
        config=config,
        fixed=fixed,
        space=space,
        folds=over,
        search=Search(**search),  # type: ignore[arg-type]
    )
    sweep.reject_problems()
    study, signal = sweep.run()
    set_result({"dir": str(sweep.home), **study.write_summary(sweep.about)})
    _show(study, sweep.search.metric)
    if signal is not None:
        print_text("The same command continues the sweep.", err=True)
        return INTERRUPTED + signal
    return 0 if study.best() is not None else NO_RESULT


@dataclass
class Sweep:
    """One sweep: what is varied, and where its runs are."""

    home: Path
    config: Path
    fixed: list[str]
    space: Space
    folds: Folds | None
    search: Search

    def __post_init__(self) -> None:
        from hookloop.cli.search.sweep_space import describe

        named = {self.folds.key: {"folds": self.folds.count}} if self.folds is not None else {}
        self.rule = self.search.rule()
        self.count = self.search.count(self.space)
        self.about: dict[str, object] = {
            "config": str(self.config),
            "overrides": self.fixed,
            "space": {**describe(self.space), **named},
            "metric": self.search.metric,
            "mode": "max" if self.rule == "greater" else "min",
        }

    def reject_problems(self) -> None:
        """Reject a config with problems here, once, and not in each trial."""
        from hookloop.cli.search.sweep_space import first_values, overrides
        from hookloop.config.blueprint import draw
        from hookloop.config.load import load

        # One value of each, so that a key that does not exist is rejected before any trial.
        tried = first_values(self.space)
        if self.folds is not None:
            tried[self.folds.key] = 0
        draw(load(self.config, [*self.fixed, *overrides(tried)]))

    def run(self) -> tuple[Study, int | None]:
        """Make the trials that are missing; return them, and the signal that ended this early."""
        from hookloop.cli.search.sweep_jobs import Jobs
        from hookloop.cli.search.sweep_study import Study, require_optuna
        from hookloop.runs.lock import RunLock

        require_optuna()
        self._claim()
        lock = RunLock(self.home)
        lock.take()
        try:
            self._check_is_same()
            study = Study(
                self.home,
                self.space,
                rule=self.rule,
                sampler=self.search.sampler,
                pruner=self.search.pruner,
                seed=self.search.seed,
            )
            study.write_summary(self.about)

            def report(trial: Trial) -> None:
                study.write_summary(self.about)
                print_text(_line(trial, self.search.metric))

            jobs = Jobs(study, self._task(), self.search.jobs, report)
            jobs.run(self.count)
        finally:
            lock.give_back()
        return study, jobs.signal

    def _claim(self) -> None:
        """Make the directory, with a file that shows what it is.

        Before the lock: a directory that has a lock and not this file is taken for a run.
        """
        from hookloop.runs.files import write_text
        from hookloop.runs.reader import SWEEP
        from hookloop.runs.records import to_json

        self.home.mkdir(parents=True, exist_ok=True)
        if not (self.home / SWEEP).exists():
            begun = {**self.about, "best": None, "trials": []}
            write_text(self.home / SWEEP, to_json(begun, indent=2))

    def _task(self) -> dict[str, object]:
        """Return what every process of the sweep is told."""
        return {
            "folder": str(self.home),
            "config": str(self.config),
            "overrides": self.fixed,
            "aliases": chosen_aliases(),
            "metric": self.search.metric,
            "rule": self.rule,
            "pruner": self.search.pruner,
            "folds": None if self.folds is None else [self.folds.key, self.folds.count],
        }

    def _check_is_same(self) -> None:
        """Reject a directory in which another sweep has begun."""
        from hookloop.runs.reader import SWEEP
        from hookloop.runs.reading import read_json

        file = self.home / SWEEP
        if not file.exists():
            return
        try:
            before = read_json(file)
        except (OSError, ValueError) as error:
            raise HookloopError(f"'{file}' cannot be read: {error}") from error
        from hookloop.runs.records import to_json

        mine = json.loads(to_json(self.about))
        known = before if isinstance(before, dict) else {}
        compared = ("overrides", "space", "metric", "mode")
        if differing := [key for key in compared if known.get(key) != mine[key]]:
            raise HookloopError(
                f"'{self.home}' holds another sweep, which differs in {', '.join(differing)}: give "
                "--dir for a new one."
            )


def _line(trial: Trial, metric: str) -> str:
    from hookloop.cli.search.sweep_space import overrides

    result = trial.problem or trial.state
    if trial.value is not None:
        spread = "" if trial.deviation is None else f" ± {trial.deviation:.4g}"
        result = f"{metric} {trial.value:.4g}{spread}"
    return f"{trial.name}  {result}  {' '.join(overrides(trial.chosen))}".rstrip()


def _show(study: Study, metric: str) -> None:
    """Print all trials, the best first, and the settings of the best."""
    from hookloop.cli.search.sweep_space import overrides

    trials = study.trials()
    keys = list(dict.fromkeys(key for trial in trials for key in trial.chosen))
    sign = 1 if study.rule == "less" else -1
    has_folds = any(trial.deviation is not None for trial in trials)
    rows = [
        [
            trial.name,
            trial.state,
            "" if trial.value is None else f"{trial.value:.6g}",
            *(["" if trial.deviation is None else f"{trial.deviation:.3g}"] if has_folds else []),
            *(str(trial.chosen.get(key, "")) for key in keys),
        ]
        for trial in sorted(trials, key=lambda one: (one.value is None, sign * (one.value or 0.0)))
    ]
    columns = ["trial", "state", metric, *(["deviation"] if has_folds else []), *keys]
    show_table(columns, rows, wide=("trial",))
    if (best := study.best()) is not None:
        words = " ".join(overrides(best.chosen))
        print_text(f"best: {study.folder / best.name}  {words}".rstrip())
    if has_folds and not any(trial.deviation for trial in trials):
        print_text(
            "warning: all folds have the same value, so the data does not depend on the key of "
            "--folds: refer to it in train_data and val_data, as in 'fold: ${vars.fold}'.",
            err=True,
        )
