"""Evaluate a checkpoint: what ``test``, ``validate`` and ``predict`` have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from hookloop.cli.shared.arguments import CHOICES, run_directory_of
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text
from hookloop.errors import CheckpointError
from hookloop.every import count_of
from hookloop.runs.layout import RunDir
from hookloop.short_runs.scratch import scratch_directory

if TYPE_CHECKING:
    from hookloop.config.tree import Config
    from hookloop.trainer.trainer import Trainer


MOST_NAMED = 3
"""How many of the files that are not kept are named."""


@dataclass(frozen=True)
class Opened:
    """A Trainer that is ready to evaluate.

    Attributes:
        trainer: The Trainer.
        checkpoint: What its method gets: ``"best"``, or None for the weights that it has.
        shown: The file that it loads, or the config, to be printed.
        home: The run that is evaluated, if it is one.
    """

    trainer: Trainer
    checkpoint: str | None
    shown: str
    home: Path | None

    @property
    def label(self) -> str:
        """Which weights were evaluated; known afterwards."""
        best = self.trainer.run.outcome.best
        if self.checkpoint is not None and best is not None:
            return str(best)
        # Not what was the newest before: it may be damaged, and a live run may have saved since.
        return self.trainer.resumed_from or self.shown


def evaluate(
    phase: Literal["val", "test"],
    config: Path,
    overrides: tuple[str, ...],
    checkpoint: Path | str | None,
    run_dir: Path | None,
) -> int:
    """Evaluate a checkpoint with the data of a config and print the metrics.

    A checkpoint of the run that CONFIG stands for is resumed with all its state, because averaged
    weights belong to a hook, and the numbers are added to the run's records. Any other evaluation
    loads only the weights, and leaves nothing on disk unless a directory is given.
    """
    with opened(config, overrides, checkpoint, run_dir, prefers_best=phase == "test") as evaluation:
        trainer, chosen = evaluation.trainer, evaluation.checkpoint
        if phase == "test":
            metrics = trainer.test(checkpoint=chosen)
        else:
            metrics = trainer.validate(checkpoint=chosen)
    set_result({"phase": phase, "checkpoint": evaluation.label, "metrics": dict(metrics)})
    numbers = "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())
    print_text(f"{evaluation.label}  {numbers}")
    return 0


@contextmanager
def opened(
    config: Path,
    overrides: tuple[str, ...],
    checkpoint: Path | str | None,
    run_dir: Path | None,
    *,
    prefers_best: bool,
) -> Iterator[Opened]:
    """Build a Trainer with the checkpoint to evaluate.

    Args:
        config: A config, or the directory of a run.
        overrides: ``a.b=value`` each.
        checkpoint: A file, ``"best"``, ``"last"``, or None for the default.
        run_dir: Where to keep the evaluation of a config as a run of its own.
        prefers_best: Whether the default is the best, where the run keeps one.
    """
    from hookloop.config.load import load

    loaded = load(config, overrides)
    # After loading, so that a bad file is rejected without waiting for torch.
    from hookloop.config.build import build

    home = run_directory_of(config)
    if checkpoint in CHOICES and home is None:
        raise CheckpointError(
            f"--checkpoint {checkpoint} needs the directory of a run, and '{config}' is a config: "
            "name the directory instead, or a file."
        )
    file = None if checkpoint in CHOICES else cast("Path | None", checkpoint)
    named = _named_checkpoint(loaded, file)
    if named is None and home is not None:
        resume, chosen = str(home), _last_of(home)
    elif named is not None and home is not None and _is_of_run(named, home):
        resume = chosen = named
    else:
        resume, chosen = None, named
    if resume is not None:
        _setup(loaded).pop("load_from", None)  # The run only started from these weights.
    elif chosen is not None:
        loaded.tree["setup"] = {**_setup(loaded), "load_from": chosen}
    if chosen is None and _setup(loaded).get("load_from") is None and checkpoint != "best":
        print_text("warning: no checkpoint is given, so the weights are untrained.", err=True)
    with ExitStack() as stack:
        if run_dir is None and resume is not None:
            run_dir = home
        elif run_dir is None and not loaded.tree.get("resume"):
            run_dir = stack.enter_context(_temporary_directory())
        trainer = build(loaded, run_dir=run_dir, resume=resume)
        is_best = checkpoint == "best" or (
            prefers_best
            and checkpoint is None
            and resume == str(home)
            and home is not None
            and _keeps_best(trainer, home)
        )
        shown = chosen or loaded.path.name
        yield Opened(trainer, "best" if is_best else None, shown, home if resume else None)


def _setup(config: Config) -> dict[str, object]:
    held = config.tree.get("setup")
    return held if isinstance(held, dict) else {}  # Anything else is rejected when it is built.


def _keeps_best(trainer: Trainer, home: Path) -> bool:
    from hookloop.checkpoint.choose import find_best

    stores = [store for hook in trainer.run.hooks for store in hook.stores(home)]
    return bool(find_best(home, stores))


@contextmanager
def _temporary_directory() -> Iterator[Path]:
    """Give hooks a directory that is deleted afterwards, and report what they leave there."""
    with scratch_directory("evaluate") as folder:
        home = RunDir(Path(folder) / "run")
        yield home.path
        # Every run writes these. Nothing is lost without them, because the metrics are printed.
        own = {
            home.config_file,
            home.described_file,
            home.metrics_file,
            home.summary_file,
            home.log_file,
        }
        files = [path for path in home.path.rglob("*") if path.is_file() and path not in own]
        if files:
            names = ", ".join(path.name for path in files[:MOST_NAMED])
            print_text(
                f"What hooks wrote was not kept: {count_of(len(files), 'file')}, such as {names}. "
                "To keep the evaluation as a run of its own, give --run-dir.",
                err=True,
            )


def _last_of(home: Path) -> str | None:
    """Return the newest checkpoint of a run, to be shown."""
    run = RunDir(home)
    return str(run.last_checkpoint or run.last_pointer or "") or None


def _named_checkpoint(config: Config, checkpoint: Path | None) -> str | None:
    """Return the file that the command line names; for a directory, its newest checkpoint."""
    if checkpoint is not None and checkpoint.is_dir():
        return _newest_in(checkpoint)
    if checkpoint is not None:
        return str(checkpoint)
    # The config of a run has the weights that it started from, which are not meant here.
    is_given = config.is_override(("setup", "load_from"))
    path = _setup(config).get("load_from") if is_given else None
    return path if isinstance(path, str) else None


def _newest_in(directory: Path) -> str | None:
    """Return the newest checkpoint in a directory; one that is elsewhere has to be named."""
    run = RunDir(directory)
    pointer = run.last_pointer
    # The directory may be somebody else's, and its pointer can hold any URL.
    if pointer is not None and pointer.location is not None:
        raise CheckpointError(
            f"'{directory}' names '{pointer}', outside of it, as its newest checkpoint. If you "
            "trust that, name the file itself: setup.load_from=..."
        )
    return None if run.last_checkpoint is None else str(run.last_checkpoint)


def _is_of_run(checkpoint: str, home: Path) -> bool:
    """Return whether a file is a complete checkpoint of a run, not only weights."""
    from hookloop.checkpoint.store.store import CheckpointStore

    path = Path(checkpoint)
    # By the index, because a file alone does not show whether parts were left out of it.
    saved = CheckpointStore(home).index.entries.get(path.name)
    return path.resolve().parent == home.resolve() and saved is not None and saved.is_resumable
