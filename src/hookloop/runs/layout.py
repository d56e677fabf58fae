"""The files of a run directory: their names, how a directory is claimed, how files are written.

Laid out like this::

    runs/2026-01-31_09-30-00/
      config.yaml        the effective config; can be run again as it is
      trained_with.yaml  instead of it, what a script has trained with; for comparisons only
      metrics.jsonl      one JSON object per line
      run.log            warnings, failures and how it ended, with times
      interventions.jsonl  what happened to it from outside: starts, changes, requests, rewinds
      fingerprints.jsonl   what the training was, bit by bit, where it is recorded
      afterwards.jsonl   metrics that replays recorded, of iterations long past
      summary.json       how the run ended (see ``write_summary``)
      last_checkpoint    the name of the newest checkpoint
      epoch_5.pth        checkpoints
      parent/            of a fork: the checkpoint of its parent, which it began with
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hookloop.errors import HookloopError, RunExistsError
from hookloop.runs.checkpoint_names import LAST, SUFFIX
from hookloop.runs.files import overwrite, write_bytes, write_text
from hookloop.runs.metrics_file import records
from hookloop.runs.reading import MOST, parse_file, read_bytes
from hookloop.runs.records import to_json, to_number

__all__ = ["TIME", "Pointer", "RunDir", "default_path", "to_json", "write_text"]

TIME = "{time}"
"""Stands for the time in the path of a new run."""


_WORDS = (b'"NaN"', b'Infinity"')
"""Numbers that are written as text; a list of a thousand runs looks for them where there are any.
"""

LONGEST_POINTER = 4096
"""How many bytes of ``last_checkpoint`` are read."""


@dataclass(frozen=True)
class Pointer:
    """The content of ``last_checkpoint``.

    Attributes:
        name: The name of the file.
        location: Directory or URL of another store; None for the run's own directory.
    """

    name: str
    location: str | None = None

    def __str__(self) -> str:
        return self.name if self.location is None else f"{self.location}/{self.name}"


@dataclass(frozen=True)
class RunDir:
    """The directory of one run. The constructor touches no file; ``create`` and ``open`` do."""

    path: Path

    def __post_init__(self) -> None:
        """Take text as a path."""
        object.__setattr__(self, "path", Path(self.path))

    @classmethod
    def create(cls, path: str | Path | None = None, root: str | Path = "runs") -> RunDir:
        """Claim a directory for a new run.

        Args:
            path: The directory to use; one that already holds a run is rejected. ``{time}`` in its
                last part stands for the time, and a number is added if that name is taken.
            root: Where a directory named after the time is made if no ``path`` is given.
        """
        if path is None:
            path = Path(root) / TIME
        if TIME in Path(path).name:
            return cls(_claim(Path(path)))
        run = cls(Path(path))
        run.reject_taken()
        _make(run.path)
        # Now, and not after the first epoch, when the first checkpoint is written.
        if not os.access(run.path, os.W_OK | os.X_OK):
            raise HookloopError(
                f"The run directory '{path}' cannot be written: change its permissions, or choose "
                "another one with run_dir."
            )
        return run

    @classmethod
    def open(cls, path: str | Path) -> RunDir:
        """Open the directory of an existing run, to resume it; it is created if it is missing."""
        run = cls(Path(path))
        _make(run.path)
        return run

    @property
    def config_file(self) -> Path:
        """The effective config."""
        return self.path / "config.yaml"

    @property
    def described_file(self) -> Path:
        """What a script has trained with, under the keys of a config."""
        return self.path / "trained_with.yaml"

    @property
    def metrics_file(self) -> Path:
        """The records of all metrics, one JSON object per line."""
        return self.path / "metrics.jsonl"

    @property
    def summary_file(self) -> Path:
        """How the run ended, or its status so far."""
        return self.path / "summary.json"

    @property
    def log_file(self) -> Path:
        """Warnings, failures and how the run ended, with times."""
        return self.log_file_of(0)

    def log_file_of(self, rank: int) -> Path:
        """Return the log of one rank; the first one's is that of the run."""
        return self.path / ("run.log" if rank == 0 else f"run_rank{rank}.log")

    @property
    def hooks_file(self) -> Path:
        """The timetable of the run: which hook acts where, what it costs, and how it stands."""
        return self.path / "hooks.json"

    @property
    def media_file(self) -> Path:
        """The index of pictures, texts, tables and histograms, one JSON object per line."""
        return self.path / "media.jsonl"

    @property
    def interventions_file(self) -> Path:
        """What happened to the run from outside, one JSON object per line."""
        return self.path / "interventions.jsonl"

    @property
    def fingerprints_file(self) -> Path:
        """What the training was, bit by bit, one JSON object per line."""
        return self.path / "fingerprints.jsonl"

    @property
    def afterwards_file(self) -> Path:
        """What replays have recorded of past iterations, one JSON object per line."""
        return self.path / "afterwards.jsonl"

    @property
    def parent_folder(self) -> Path:
        """What a fork keeps of its parent: a link to the checkpoint, and lines once detached."""
        return self.path / "parent"

    @property
    def last_checkpoint_file(self) -> Path:
        """The text file that names the newest checkpoint."""
        return self.path / LAST

    @property
    def last_pointer(self) -> Pointer | None:
        """The content of ``last_checkpoint``, which is not to be trusted; None if it is missing."""
        if not self.last_checkpoint_file.is_file():
            return None
        # The file may be somebody else's, and hold anything.
        with self.last_checkpoint_file.open("rb") as file:
            text = file.read(LONGEST_POINTER).decode("utf-8", "replace").strip()
        location, slash, name = text.rpartition("/")
        return Pointer(name, location if slash else None)

    @property
    def last_checkpoint(self) -> Path | None:
        """The newest checkpoint in this directory, or None if there is none yet."""
        pointer = self.last_pointer
        return None if pointer is None or pointer.location else self.path / pointer.name

    def holds_run(self) -> bool:
        """Return whether there are records or checkpoints of a run here."""
        if self.summary_file.exists() or self.metrics_file.exists():
            return True
        return self.path.is_dir() and any(self.path.glob(f"*{SUFFIX}"))

    def has_checkpoints(self) -> bool:
        """Return whether there are checkpoints here, or a pointer to some elsewhere."""
        return self.last_checkpoint_file.is_file() or any(self.path.glob(f"*{SUFFIX}"))

    def can_be_continued(self) -> bool:
        """Return whether a run was started here; one that was killed early has only its config."""
        return self.holds_run() or self.last_checkpoint_file.is_file() or self.config_file.is_file()

    def reject_taken(self) -> None:
        """Reject a path where no new run can start."""
        if self.path.exists() and not self.path.is_dir():
            raise RunExistsError(f"'{self.path}' is a file: a run needs a directory of its own.")
        if self.holds_run():
            raise RunExistsError(
                f"'{self.path}' already holds a run: resume it (--resume, or resume=True), or "
                "choose another run directory. A script or a cell that is run again and again "
                "takes resume='auto', which begins or continues."
            )

    def write_config(self, config: Mapping[str, object]) -> None:
        """Write the effective config as plain YAML."""
        # Imported here, so that finding and reading runs does not load PyYAML (--help).
        from hookloop.runs import plain_yaml

        write_text(self.config_file, plain_yaml.dump(config))

    def write_described(self, described: Mapping[str, object]) -> None:
        """Write what a script trains with, as plain YAML."""
        from hookloop.runs import plain_yaml

        write_text(self.described_file, plain_yaml.dump(described))

    def write_summary(self, summary: Mapping[str, object], *, durable: bool = True) -> None:
        """Write how the run ended; ``hookloop.runs.reader`` reads the keys.

        Unless ``durable``, a crash of the machine may leave the previous summary.
        """
        data = (to_json(summary, indent=2) + "\n").encode()
        try:
            write_bytes(self.summary_file, data, durable=durable)
        except OSError:  # On a full disk, a run that has ended would seem to be running.
            if not self.summary_file.is_file() or not overwrite(self.summary_file, data):
                raise

    def read_summary(self) -> dict[str, object]:
        """Return what ``write_summary`` wrote, with numbers restored; empty before that.

        Raises:
            OSError: If it cannot be read.
            ValueError: If it is not a summary.
        """
        try:
            data = read_bytes(self.summary_file, MOST + 1)
            summary = parse_file(data, self.summary_file)
            if any(word in data for word in _WORDS):
                summary = _numbers(summary)
        except FileNotFoundError:
            return {}
        except RecursionError as error:
            raise ValueError(f"'{self.summary_file.name}' is nested too deep") from error
        if not isinstance(summary, dict):
            raise ValueError(f"'{self.summary_file.name}' is not a summary")
        return summary

    def read_metrics(self) -> Iterator[dict[str, object]]:
        """Yield the records of ``metrics.jsonl`` in order, NaN and infinities as floats.

        A last line without its newline is still being written, and is left out.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If a line is damaged.
        """
        return records(self.metrics_file, is_lenient=False)


def default_path(name: str | None = None) -> Path:
    """Return the default directory of a run, named after the time and its own name.

    >>> str(default_path("digits"))
    'runs/{time}_digits'
    """
    words = re.sub(r"[^\w.=+-]+", "-", name or "").strip("-.")
    return Path("runs") / (f"{TIME}_{words}" if words else TIME)


def _make(directory: Path) -> None:
    """Make a directory if it is missing."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HookloopError(
            f"The run directory '{directory}' cannot be made ({error.strerror}): choose another "
            "one with run_dir."
        ) from error


def _claim(template: Path) -> Path:
    """Make a directory named after the time."""
    _make(template.parent)
    name = template.name.replace(TIME, datetime.now().strftime("%Y-%m-%d_%H-%M-%S"))
    count = 1
    # No look first: only mkdir decides safely between two runs that start in the same second.
    while True:
        path = template.with_name(name if count == 1 else f"{name}-{count}")
        try:
            path.mkdir()
        except FileExistsError:
            count += 1
        else:
            return path


def _numbers(value: object) -> object:
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return to_number(value)
