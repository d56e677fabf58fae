"""What ``test`` and ``validate`` have in common: weights, one evaluation, its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from hookloop.cli.arguments import run_directory_of
from hookloop.cli.report import say
from hookloop.errors import CheckpointError
from hookloop.runs.layout import RunDir

if TYPE_CHECKING:
    from hookloop.config.tree import Config


MOST_NAMED = 3
"""Files that are named when they are not kept."""


def evaluate(
    phase: Literal["val", "test"],
    config: Path,
    overrides: tuple[str, ...],
    checkpoint: Path | None,
    run_dir: Path | None,
) -> int:
    """Evaluate a checkpoint with the data of a config and print the metrics.

    A checkpoint of the run that CONFIG stands for is taken up with all its state (averaged weights
    are that of a hook), and the numbers are added to the run's records. Any other evaluation takes
    weights, and leaves nothing on disk unless a directory is given.
    """
    from hookloop.config.load import load

    loaded = load(config, overrides)
    from hookloop.config.build import build

    home = run_directory_of(config)
    given = _given(loaded, checkpoint)
    if given is None and home is not None:
        resume, chosen = str(home), _last_of(home)
    elif given is not None and home is not None and _is_of_run(given, home):
        resume = chosen = given
    else:
        resume, chosen = None, given
    if resume is not None:
        loaded.tree.pop("load_from", None)  # The weights that the run itself began with.
    elif chosen is not None:
        loaded.tree["load_from"] = chosen
    if chosen is None and loaded.tree.get("load_from") is None:
        say("warning: no checkpoint is given, so the weights are untrained.", err=True)
    with ExitStack() as stack:
        if run_dir is None and resume is not None:
            run_dir = home
        elif run_dir is None and not loaded.tree.get("resume"):
            run_dir = stack.enter_context(_passing_directory())
        trainer = build(loaded, run_dir=run_dir, resume=resume)
        metrics = trainer.test() if phase == "test" else trainer.validate()
    numbers = "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())
    say(f"{chosen or loaded.path.name}  {numbers}")
    return 0


@contextmanager
def _passing_directory() -> Iterator[Path]:
    """Give hooks a directory that is deleted, and report what they leave there."""
    with TemporaryDirectory(prefix="hookloop-evaluate-") as folder:
        home = RunDir(Path(folder) / "run")
        yield home.path
        own = {home.config_file, home.metrics_file, home.summary_file, home.log_file}
        files = [path for path in home.path.rglob("*") if path.is_file() and path not in own]
        if files:
            names = ", ".join(path.name for path in files[:MOST_NAMED])
            say(
                f"What hooks wrote was not kept: {len(files)} files, such as {names}. To keep the "
                "evaluation as a run of its own, give --run-dir.",
                err=True,
            )


def _last_of(home: Path) -> str | None:
    """Return what a run says is its newest checkpoint, to be shown."""
    run = RunDir(home)
    return str(run.last_checkpoint or run.last_pointer or "") or None


def _given(config: Config, checkpoint: Path | None) -> str | None:
    """Return the file that the command line names; of a directory, its newest checkpoint."""
    if checkpoint is not None and checkpoint.is_dir():
        return _newest_in(checkpoint)
    if checkpoint is not None:
        return str(checkpoint)
    said = config.tree.get("load_from")
    is_override = (config.where(("load_from",)) or "").startswith("command line")
    return said if is_override and isinstance(said, str) else None


def _newest_in(directory: Path) -> str | None:
    """Return the newest checkpoint in a directory; what lies elsewhere has to be named."""
    run = RunDir(directory)
    pointer = run.last_pointer
    if pointer is not None and pointer.place is not None:
        raise CheckpointError(
            f"'{directory}' says that its newest checkpoint is '{pointer}', outside of it. If you "
            "trust that, name the file itself: load_from=..."
        )
    return None if run.last_checkpoint is None else str(run.last_checkpoint)


def _is_of_run(checkpoint: str, home: Path) -> bool:
    """Tell whether a file is a whole checkpoint of a run, rather than weights."""
    from hookloop.checkpoint.store import CheckpointStore

    path = Path(checkpoint)
    saved = CheckpointStore(home).index.entries.get(path.name)
    return path.resolve().parent == home.resolve() and saved is not None and saved.is_resumable
