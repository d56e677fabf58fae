"""`ClearML`: records in a task of ClearML."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from hookloop.errors import HookError
from hookloop.runs.environment import packages
from hookloop.runs.files import write_text
from hookloop.writers.base import Writer, require
from hookloop.writers.records import Config, Histogram, Image, Record, Scalars, Table, Text

# What ClearML would log on its own, of which the records have what belongs to the run.
QUIET = dict.fromkeys(
    ("auto_connect_frameworks", "auto_connect_arg_parser", "auto_connect_streams",
     "auto_resource_monitoring", "reuse_last_task_id"), False,
)  # fmt: skip
CACHE, KEY = "CLEARML_CACHE_DIR", "CLEARML_API_ACCESS_KEY"
MASTER = ("CLEARML_PROC_MASTER_ID", "TRAINS_PROC_MASTER_ID")
"""Name the last process with a task, also after its end. A process that inherits the name of
another gets no task of its own from ClearML: it joins that task, or sends to nowhere."""


class ClearML(Writer):
    """Sends to one task; offline, it is a folder, for ``Task.import_offline_session``.

    ClearML has one task per process at a time. It would write 0 for NaN and infinity, so those are
    left out.

    Args:
        directory: The directory for the files of an offline task.
        project: The project.
        run_id: The task to continue; a new one by default.
        mode: ``"online"`` or ``"offline"``.
        name: The name of the task.
        options: Further arguments of ``Task.init``: ``tags``, ``output_uri``.
    """

    name = "clearml"

    def __init__(
        self,
        directory: Path,
        project: str = "hookloop",
        *,
        run_id: str | None = None,
        mode: str = "online",
        name: str | None = None,
        **options: object,
    ) -> None:
        load_clearml("ClearML")
        self._is_offline = mode == "offline"
        self._directory = directory / "offline"
        # The number is what ClearML adds to each iteration; otherwise it would add its last one.
        continued = {"reuse_last_task_id": run_id, "continue_last_task": 0} if run_id else {}
        given = {"project_name": project, "task_name": name, **QUIET, **continued}
        self._environment = {name: os.environ.get(name) for name in (CACHE, *MASTER)}
        try:
            self._task = self._open(directory, given | options)
        except BaseException:
            self._restore_environment()
            raise
        self.run_id: str = self._task.id
        self._log = self._task.get_logger()
        self._continued = run_id

    def _open(self, directory: Path, given: Mapping[str, object]) -> Any:  # noqa: ANN401
        kind = load_clearml("ClearML").Task
        for name in MASTER:
            os.environ.pop(name, None)
        if (current := kind.current_task()) is not None:
            raise HookError(
                f"ClearML: the task '{current.name}' is open in this process, which can have only "
                "one: close it, or leave out this writer."
            )
        if self._is_offline:
            os.environ[CACHE] = str(directory)
        kind.set_offline(self._is_offline)
        if hasattr(kind, "_report_subprocess_enabled"):
            # From a thread, and not from a fork of this process, which has threads of torch's.
            kind._report_subprocess_enabled = False
        # Otherwise ClearML parses the whole repository for its imports, for a minute of the
        # training's time where that is large.
        kind.force_requirements_env_freeze(requirements_file=str(_list_packages(directory)))
        with keeping_signals(), _silent():
            return kind.init(**given)

    def write(self, records: Iterable[Record]) -> None:
        """Report each record."""
        for record in records:
            match record:
                case Scalars():
                    for name, value in record.values.items():
                        if math.isfinite(value):
                            self._log.report_scalar(*_split(name), value, iteration=record.step)
                case Config():
                    self._task.set_parameters(record.flat())
                case Image():
                    self._log.report_image(
                        *_split(record.name), iteration=record.step or 0, image=_pixels(record)
                    )
                case Histogram() if len(record.values):
                    self._log.report_histogram(
                        *_split(record.name), record.values, iteration=record.step or 0
                    )
                case Text():
                    self._log.report_text(f"{record.name}: {record.text}", print_console=False)
                case Table():
                    rows = [list(map(str, row)) for row in (record.columns, *record.rows)]
                    self._log.report_table(
                        *_split(record.name), iteration=record.step or 0, table_plot=rows
                    )
                case _:
                    pass

    def held(self) -> Mapping[str, int]:
        """Return the newest step of each name; online, the one before the last, for all names."""
        if self._continued is None:
            return {}
        if not self._is_offline:
            return {"": int(self._task.get_last_iteration()) - 1}
        steps: dict[str, int] = {}
        for name, step in read_steps(self._directory / self._continued / "metrics.jsonl"):
            steps[name] = max(step, steps.get(name, -1))
        return steps

    def flush(self) -> None:
        """Wait until everything has left this process."""
        self._task.flush(wait_for_uploads=True)

    def close(self) -> None:
        """End the task."""
        from clearml.backend_interface.metrics import Metrics

        with _silent():
            self._task.close()
        # It would keep them for the next task; in a fork of this process they would not run.
        Metrics.close_async_threads()
        self._restore_environment()

    def _restore_environment(self) -> None:
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _list_packages(directory: Path) -> Path:
    """Write what is installed to a file, in the form of pip."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "requirements.txt"
    lines = [f"{name}=={version}\n" for name, version in packages(tuple(sys.path))]
    write_text(path, "".join(lines))
    return path


def load_clearml(who: str) -> ModuleType:
    """Import ClearML."""
    with _silent():
        return require("clearml", extra="clearml", who=who)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep what ClearML prints, and warnings about what it uses, from the user."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def check_server(mode: str) -> None:
    """Reject an online task without credentials; this does not use the network."""
    load_clearml("ClearML")
    from clearml.config import config

    with _silent():
        found = os.environ.get(KEY) or config.get("api.credentials.access_key", "")
    if mode == "online" and not found:
        raise HookError(
            "ClearML: there are no credentials, so nothing can be sent: run 'clearml-init', set "
            "CLEARML_API_ACCESS_KEY and CLEARML_API_SECRET_KEY, or write mode='offline'."
        )


@contextlib.contextmanager
def keeping_signals() -> Iterator[None]:
    """Keep the handlers of signals: with those of ClearML a run could not end in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGABRT")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def read_steps(path: Path) -> Iterator[tuple[str, int]]:
    """Yield name and step of each number in the file of an offline task."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError):  # Cut short by a kill.
            for event in json.loads(line):
                if event["type"] == "training_stats_scalar":
                    title, series = str(event["metric"]), str(event["variant"])
                    name = title if title == series else f"{title}/{series}"
                    yield name, int(event["iter"])


def _split(name: str) -> tuple[str, str]:
    """Return a metric's plot and line in it.

    >>> _split("train/loss"), _split("lr")
    (('train', 'loss'), ('lr', 'lr'))
    """
    title, slash, series = name.partition("/")
    return (title, series) if slash and series else (name, name)


def _pixels(record: Image) -> object:
    return record.pixels.squeeze(-1) if record.pixels.shape[-1] == 1 else record.pixels
