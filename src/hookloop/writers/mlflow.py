"""Records in MLflow."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hookloop.errors import HookError
from hookloop.runs.files import write_bytes
from hookloop.writers.base import Writer, require
from hookloop.writers.pixels import encode_png
from hookloop.writers.records import Config, Image, Record, Scalars, Table, Text

PARAMS = 100
"""What MLflow accepts in one request, and below the longest value of a parameter."""
LONGEST = 500

LONGEST_NAME = 250
DATABASES = ("sqlite", "postgresql", "mysql", "mssql")


if TYPE_CHECKING:
    from mlflow.entities import Metric

_log = logging.getLogger("hookloop")


class MLflow(Writer):
    """Sends to one MLflow run: metrics, parameters, and artefacts for pictures, text and tables.

    Args:
        tracking_uri: A server, a database (``sqlite:///mlflow.db``) or a directory (``file:...``).
        experiment: Name of the experiment; made when it is missing.
        run_name: How MLflow shows the run.
        run_id: The run to go on with; a new one when not given.
    """

    name = "mlflow"

    def __init__(
        self,
        tracking_uri: str,
        experiment: str = "hookloop",
        *,
        run_name: str | None = None,
        run_id: str | None = None,
    ) -> None:
        self._mlflow = require("mlflow", extra="mlflow", who="MLflow")
        if tracking_uri.startswith("file:"):
            # MLflow wants to hear that a plain directory is meant, since it prefers a database.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        self._client = self._mlflow.MlflowClient(tracking_uri=tracking_uri)
        if run_id is None:
            found = self._client.get_experiment_by_name(experiment)
            made = found.experiment_id if found else self._client.create_experiment(experiment)
            run_id = self._client.create_run(made, run_name=run_name).info.run_id
        else:
            if tracking_uri.startswith("file:"):
                _repair(Path(tracking_uri.removeprefix("file:")), run_id)
            self._client.update_run(run_id, status="RUNNING")
        self.run_id: str = run_id
        self.status = "FINISHED"
        self._rejected: set[str] = set()

    def write(self, records: Iterable[Record]) -> None:
        """Log each record."""
        for record in records:
            match record:
                case Scalars():
                    self._log_metrics(record)
                case Config():
                    self._log_parameters(record)
                case Image() if record.file is None:
                    self._log_file(record.name, record.step, ".png", encode_png(record.pixels))
                case Image() | Table() if record.file is not None:
                    folder = str(PurePosixPath(record.name).parent)
                    self._client.log_artifact(self.run_id, str(record.file), folder)
                case Text():
                    self._log_file(record.name, record.step, ".md", record.text.encode())
                case Table():
                    self._log_file(record.name, record.step, ".csv", record.to_csv().encode())
                case _:
                    pass

    def held(self) -> Mapping[str, int]:
        """Return the newest step of each metric of the run."""
        names = self._client.get_run(self.run_id).data.metrics
        return {
            name: max(one.step for one in self._client.get_metric_history(self.run_id, name))
            for name in names
        }

    def held_name(self, name: str) -> str:
        """Return how MLflow calls a name."""
        return metric_name(name)

    def close(self) -> None:
        """Mark the run as ended, in the way that ``status`` says."""
        self._client.set_terminated(self.run_id, self.status)

    def _log_metrics(self, record: Scalars) -> None:
        entities = self._mlflow.entities
        moment = int(record.time * 1000)
        metrics = [
            entities.Metric(metric_name(name), value, moment, record.step)
            for name, value in (dict(record.values) | {"epoch": float(record.epoch)}).items()
            if metric_name(name) not in self._rejected
        ]
        try:
            self._client.log_batch(self.run_id, metrics=metrics)
        except (self._mlflow.MlflowException, OSError):
            self._log_one_by_one(metrics)

    def _log_one_by_one(self, metrics: Sequence[Metric]) -> None:
        """Leave out a metric that the store does not take, and not the others with it."""
        failed: dict[str, Exception] = {}
        for metric in metrics:
            try:
                self._client.log_batch(self.run_id, metrics=[metric])
            except (self._mlflow.MlflowException, OSError) as error:
                failed[metric.key] = error
        if len(failed) == len(metrics):  # It is not the names.
            raise next(iter(failed.values()))
        for name, why in failed.items():
            _log.warning("MLflow does not take the metric '%s', it is left out: %s", name, why)
        self._rejected |= set(failed)

    def _log_parameters(self, record: Config) -> None:
        known = self._client.get_run(self.run_id).data.params  # These can never change.
        params = [
            self._mlflow.entities.Param(name, str(value)[:LONGEST])
            for name, value in record.flat().items()
            if name not in known
        ]
        for first in range(0, len(params), PARAMS):
            self._client.log_batch(self.run_id, params=params[first : first + PARAMS])

    def _log_file(self, name: str, step: int | None, suffix: str, content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{step or 0:08d}{suffix}"
            path.write_bytes(content)
            self._client.log_artifact(self.run_id, str(path), name)


def _repair(root: Path, run_id: str) -> None:
    """Remove what a kill left half-written: MLflow could not read the run any more."""
    for folder in root.glob(f"*/{run_id}/metrics"):
        for path in [path for path in folder.rglob("*") if path.is_file()]:
            text = path.read_bytes()
            whole = text[: text.rfind(b"\n") + 1]
            if not whole:
                path.unlink()
            elif whole != text:
                write_bytes(path, whole)


def check_uri(uri: str) -> None:
    """Reject, without a network, a place to which MLflow cannot write."""
    kind, _, path = uri.partition("://")
    if kind.partition("+")[0] in DATABASES:
        for package in ("sqlalchemy", "alembic"):
            require(package, extra="mlflow", who=f"MLflow with '{kind}'")
    if kind == "sqlite":
        folder = Path(path.removeprefix("/")).parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise HookError(
                f"MLflow cannot write to '{uri}': there is no directory '{folder}' to write in."
            )


def metric_name(name: str) -> str:
    """Turn a metric's name into one that every store of MLflow takes.

    Slashes after the first become points: in a directory a metric cannot be a file and a folder at
    once, as ``train/loss`` beside ``train/loss/max`` would be.

    >>> metric_name("train/loss"), metric_name("train/loss/max"), metric_name("val/AR@100")
    ('train/loss', 'train/loss.max', 'val/AR_100')
    >>> metric_name("../up//x/")
    'up/x'
    """
    parts = [re.sub(r"[^\w\-. :]", "_", part) for part in name.split("/")]
    first, *rest = [part for part in parts if part.strip(".")] or ["_"]
    return (f"{first}/{'.'.join(rest)}" if rest else first)[:LONGEST_NAME]
