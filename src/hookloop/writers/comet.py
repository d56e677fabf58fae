"""`Comet`: records in an experiment of Comet."""

from __future__ import annotations

import io
import json
import logging
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

from hookloop.errors import HookError
from hookloop.writers.base import Writer, require
from hookloop.writers.pixels import encode_png
from hookloop.writers.records import Config, Histogram, Image, Record, Scalars, Table, Text

# What Comet would log on its own, of which the records have what belongs to the run.
QUIET = dict.fromkeys(
    ("log_code", "log_graph", "log_git_metadata", "log_git_patch", "log_env_details", "parse_args",
     "auto_param_logging", "auto_metric_logging", "auto_output_logging"), False,
)  # fmt: skip
MESSAGES = "messages.json"
MAX_LINE = 1 << 24  # Characters of one message; longer ones hold pictures, and no numbers.


class Comet(Writer):
    """Sends to one experiment; offline, each part is an archive, for ``comet upload``.

    Args:
        directory: The directory for the archives of an offline experiment.
        project: The project; Comet's default if not given.
        run_id: The key of the experiment to continue; a new one by default.
        mode: ``"online"`` or ``"offline"``.
        name: The name of a new experiment.
        options: Further arguments of Comet's experiment: ``workspace``, ``log_git_metadata``.
    """

    name = "comet"

    def __init__(
        self,
        directory: Path,
        project: str | None = None,
        *,
        run_id: str | None = None,
        mode: str = "online",
        name: str | None = None,
        **options: object,
    ) -> None:
        self._comet = load_comet("Comet")
        self._directory = directory
        self._is_online = mode == "online"
        given = {"project_name": project, "display_summary_level": 0, **QUIET, **options}
        if not self._is_online:
            given["offline_directory"] = str(directory)
        prefix = "Existing" if run_id is not None else ""
        kind = f"{prefix}{'' if self._is_online else 'Offline'}Experiment"
        if run_id is not None:
            given["experiment_key"] = run_id
        # The earlier parts, before this one begins.
        self._continued = run_id
        self._experiment = getattr(self._comet, kind)(**given)
        self.run_id: str = self._experiment.get_key()
        if name is not None and run_id is None:
            self._experiment.set_name(name)

    def write(self, records: Iterable[Record]) -> None:
        """Log each record."""
        experiment = self._experiment
        for record in records:
            match record:
                case Scalars():
                    values = dict(record.values)
                    experiment.log_metrics(values, step=record.step, epoch=record.epoch)
                case Config():
                    experiment.log_parameters(record.flat())
                case Image():
                    file = io.BytesIO(encode_png(record.pixels))
                    experiment.log_image(file, name=record.name, step=record.step)
                case Histogram() if len(record.values):
                    experiment.log_histogram_3d(record.values, name=record.name, step=record.step)
                case Text():
                    about = {"name": record.name}
                    experiment.log_text(record.text, step=record.step, metadata=about)
                case Table():
                    rows = [list(row) for row in record.rows]
                    table = f"{record.name.replace('/', '_')}_{record.step or 0:08d}.csv"
                    experiment.log_table(table, rows, headers=list(record.columns))
                case _:
                    pass

    def held(self) -> Mapping[str, int]:
        """Return the newest step of each metric in the earlier parts of the experiment."""
        if self._continued is None:
            return {}
        if not self._is_online:
            return newest_steps(self._directory, self._continued)
        found = self._comet.API().get_experiment_by_key(self._continued)
        summary = found.get_metrics_summary() if found is not None else []
        return {one["name"]: int(one["stepCurrent"]) for one in summary if one.get("stepCurrent")}

    def flush(self) -> None:
        """Wait until everything has left this process; offline, it is in Comet's own file."""
        if self._is_online:
            self._experiment.flush()

    def close(self) -> None:
        """End the experiment; offline, write its archive."""
        self._experiment.end()


def load_comet(who: str) -> ModuleType:
    """Import Comet, without its changes to other packages and its banner."""
    # Read when it is imported. Whoever has imported it before has chosen.
    os.environ.setdefault("COMET_DISABLE_AUTO_LOGGING", "1")
    comet = require("comet_ml", extra="comet", who=who)
    logging.getLogger("comet_ml").setLevel(logging.ERROR)
    return comet


def check_key(mode: str) -> None:
    """Reject an online experiment without an API key; this does not use the network."""
    if mode == "online" and not load_comet("Comet").get_config("comet.api_key"):
        raise HookError(
            "Comet: there is no API key, so nothing can be sent: set COMET_API_KEY, or write "
            "mode='offline' to keep the experiment on disk for 'comet upload'."
        )


def newest_steps(directory: Path, key: str) -> dict[str, int]:
    """Read the newest step of each metric from the archives of an experiment."""
    steps: dict[str, int] = {}
    for name, step, _ in read_points(directory, key):
        steps[name] = max(step, steps.get(name, -1))
    return steps


def read_points(directory: Path, key: str) -> Iterator[tuple[str, int, float]]:
    """Yield name, step and value of each number in the archives of an experiment."""
    for path in sorted(directory.glob(f"{key}*.zip")):
        try:
            with zipfile.ZipFile(path) as archive, archive.open(MESSAGES) as lines:
                while line := lines.readline(MAX_LINE):
                    yield from _point_in(line)
        except (OSError, KeyError, zipfile.BadZipFile):  # Cut short by a kill.
            continue


def _point_in(line: bytes) -> Iterator[tuple[str, int, float]]:
    if not line.endswith(b"\n") or b'"metric_msg"' not in line:
        return
    try:
        metric = json.loads(line)["payload"]["metric"]
        yield str(metric["metricName"]), int(metric["step"]), float(metric["metricValue"])
    except (ValueError, KeyError, TypeError):  # Not a number of ours.
        return
