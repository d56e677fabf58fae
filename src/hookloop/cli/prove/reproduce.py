"""``hookloop reproduce``: train a run again from its start, and compare the numbers."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.arguments import aliases
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_error, print_text, reporting
from hookloop.errors import HookloopError
from hookloop.every import count_of

if TYPE_CHECKING:
    from hookloop.config.tree import Config
    from hookloop.runs.same_metrics import Comparison
    from hookloop.trainer.trainer import Trainer

SOURCES = "source.zip"
"""What the hook SnapshotSource keeps in a run directory."""


@click.command("reproduce", short_help="Train a run again and compare the numbers.")
@aliases
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--run-dir", type=click.Path(path_type=Path), help="Directory of the new run.")
@click.option("--iters", type=click.IntRange(min=1), help="Train this many iterations only.")
@click.option(
    "--sources/--no-sources",
    "sources",
    default=None,
    help="Use the sources that RUN kept (the default, if it did), or those that are here.",
)
@click.option("--trust", is_flag=True, help="Run the sources that RUN kept without asking.")
@reporting
def command(
    run: Path,
    run_dir: Path | None,
    iters: int | None,
    sources: bool | None,
    trust: bool,
) -> int:
    """Train RUN again from its start, with its config and seed, and compare the numbers.

    First the differences between its environment and this one are shown. What RUN's config names is
    imported and built, and the sources that RUN kept are run: both are code, so you are asked
    first, unless --trust is given. The numbers of both runs are compared at equal iterations. The
    exit code is 0 if they are equal to the last bit, and 1 if not.
    """
    report = Report(str(run))
    home = _check_run(run)
    uses_sources = (home / SOURCES).is_file() if sources is None else sources
    if uses_sources:
        _check_trust(home, trust=trust)
    from hookloop.config.load import load

    loaded = load(home)
    report.tell_of(loaded, home)
    new = _new_directory(home, run_dir)
    if uses_sources:
        _use_sources(loaded, home, new, report)
    from hookloop.data.random.states import generators_kept

    with generators_kept():
        outcome = _build(loaded, new).train(max_iters=iters)
    from hookloop.runs.same_metrics import compare_metrics

    return report.conclude(str(outcome), new, compare_metrics(home, new))


@dataclass
class Report:
    """What is found, told at once.

    Attributes:
        run: The run that is trained again.
        environment: What differs between the two environments; None if the first is not known.
        notes: Why the numbers may differ.
    """

    run: str
    environment: list[str] | None = None
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Tell of something that may make the numbers differ."""
        self.notes.append(text)
        print_text(f"note: {text}")

    def tell_of(self, config: Config, home: Path) -> None:
        """Show how this environment differs, and what cannot be repeated."""
        from hookloop.runs.environment import compare, read_starts
        from hookloop.runs.layout import RunDir

        starts = read_starts(home)
        if starts:
            self.environment = compare(starts[0], describe_here(config, home))
            same = "environment: as far as it is known, the same."
            print_text("environment:" if self.environment else same)
            for line in self.environment:
                print_text(f"  {line}")
        else:
            self.note("its environment is not known: it has no environment.json.")
        if config.tree.get("seed") is None:
            self.note("it had no seed, so that the same numbers cannot be repeated.")
        summary = RunDir(home).read_summary()
        for change in _mappings(summary.get("changes")):
            self.note(
                f"{change.get('key')} was changed from {change.get('old')} to {change.get('new')} "
                f"after iteration {change.get('iter')}; its config has the last value from the "
                "start."
            )
        ranks = summary.get("ranks")
        if isinstance(ranks, int) and ranks > 1:
            self.note(f"it was trained on {ranks} ranks, and is trained again on one.")
        if len(starts) > 1 and compare(starts[0], starts[-1]):
            self.note("its environment changed while it was trained; its first one is compared.")

    def conclude(self, outcome: str, new: Path, compared: Comparison) -> int:
        """Show whether the numbers are the same; return the exit code."""
        set_result(
            {
                "run": self.run,
                "run_dir": str(new),
                "outcome": outcome,
                "environment": self.environment,
                "notes": self.notes,
                "compared": compared.numbers,
                "last_iter": compared.last_iter,
                "equal": compared.is_equal,
                "different": len(compared.differences),
                "differences": [asdict(one) for one in compared.differences[:20]],
            }
        )
        if compared.is_equal:
            print_text(
                f"equal: all {compared.numbers} numbers up to iteration {compared.last_iter} are "
                f"the same bits. The new run is {new}."
            )
        elif not compared.numbers:
            print_error("the two runs have no numbers at equal iterations to compare.")
        else:
            count = len(compared.differences)
            print_error(f"{count} of {compared.numbers} numbers differ. The new run is {new}.")
            print_text(f"  first: {compared.differences[0]}", err=True)
        return 0 if compared.is_equal else 1


def describe_here(config: Config, home: Path) -> dict[str, object]:
    """Return the environment of this process, as a run that starts here would write it."""
    from hookloop.hooks.measuring.record_environment import describe_torch
    from hookloop.parallel.world import World, choose_device
    from hookloop.runs.environment import describe_process
    from hookloop.runs.git import Repository

    repository = Repository(Path.cwd())
    here = describe_process(home)
    here |= describe_torch(choose_device(str(config.tree.get("device", "auto")), World()))
    repository.is_known(10.0)
    return {**here, "git": repository.state() or None}


def _check_run(run: Path) -> Path:
    from hookloop.runs.layout import RunDir

    found = RunDir(run)
    if not found.config_file.is_file():
        raise HookloopError(
            f"'{run}' is not a run to reproduce: give the directory of a run, with its "
            "config.yaml. A run that a script made is repeated by the script."
        )
    if not found.metrics_file.is_file():
        raise HookloopError(f"'{run}' has no metrics.jsonl, so there is nothing to compare with.")
    return run


def _check_trust(home: Path, *, trust: bool) -> None:
    """Ask whether to run the sources of a run directory, which may be somebody else's."""
    if not (home / SOURCES).is_file():
        raise HookloopError(
            f"'{home}' has no {SOURCES}: the hook SnapshotSource keeps one. Leave out --sources to "
            "use the code that is here."
        )
    if trust:
        return
    if not sys.stdin.isatty():
        raise HookloopError(
            f"'{home / SOURCES}' is code, which would be run: say --trust if you trust whoever "
            "made it, or --no-sources to use the code that is here."
        )
    click.confirm(f"Run the code in '{home / SOURCES}'?", abort=True)


def _new_directory(home: Path, run_dir: Path | None) -> Path:
    from hookloop.runs.layout import RunDir, default_path

    name = home.resolve().name
    return RunDir.create(run_dir or default_path(f"reproduce-{name}")).path


def _use_sources(config: Config, home: Path, new: Path, report: Report) -> None:
    """Unpack the sources that a run kept, and import from there first."""
    from hookloop.config.blueprint import import_path
    from hookloop.runs.environment import read_starts
    from hookloop.runs.unpacking import unpack

    folder = new / "source"
    count = unpack(home / SOURCES, folder)
    print_text(f"sources: {count_of(count, 'file')} of {home / SOURCES}, unpacked into {folder}.")
    if any(home.glob("source_iter_*.zip")):
        report.note("it was resumed with sources of its own, which are not used.")
    starts = read_starts(home)
    place = starts[0].get("directory") if starts else None
    project = Path(os.path.abspath(home / str(place))) if place is not None else Path.cwd()
    # A directory of the project is looked for among the unpacked sources.
    searched = [
        folder / path.relative_to(project)
        for path in import_path(config)
        if path.is_relative_to(project)
    ]
    wanted = [folder, folder / "src", *searched, *import_path(config)]
    found = dict.fromkeys(os.path.abspath(path) for path in wanted if path.is_dir())
    config.tree["import_path"] = list(found)


def _build(config: Config, new: Path) -> Trainer:
    """Build the run again, without what it would send or keep elsewhere."""
    from hookloop.config.build import arguments
    from hookloop.short_runs.short_run import shortened

    trainer, left_out = shortened(arguments(config, run_dir=str(new)), is_quiet=False)
    if left_out:
        print_text(f"left out: {'; '.join(left_out.values())}.")
    return trainer


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
