"""`MLflow`: records in an MLflow run."""

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

# Limits of MLflow: parameters in one request, characters of a parameter's value and of a name.
PARAMS_PER_REQUEST = 100
LONGEST_VALUE = 500
LONGEST_NAME = 250
DATABASES = ("sqlite", "postgresql", "mysql", "mssql")


if TYPE_CHECKING:
    from mlflow.entities import Metric

_log = logging.getLogger("hookloop")


class MLflow(Writer):
    """Sends to one MLflow run: metrics, parameters, and images, text and tables as artifacts.

    Args:
        tracking_uri: A server, a database (``sqlite:///mlflow.db``) or a directory (``file:...``).
        experiment: Name of the experiment; created if it is missing.
        run_name: The name of the run in MLflow.
        run_id: The MLflow run to continue; a new one by default.
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
            # MLflow prefers a database and rejects a plain directory without this variable.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        # A client of its own: the global functions of MLflow would change the user's active run.
        self._client = self._mlflow.MlflowClient(tracking_uri=tracking_uri)
        if run_id is None:
            existing = self._client.get_experiment_by_name(experiment)
            experiment_id = (
                existing.experiment_id if existing else self._client.create_experiment(experiment)
            )
            run_id = self._client.create_run(experiment_id, run_name=run_name).info.run_id
        else:
            if tracking_uri.startswith("file:"):
                _repair_metrics(Path(tracking_uri.removeprefix("file:")), run_id)
            # Its first part ended, and set the status to how it ended.
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
            name: max(point.step for point in self._client.get_metric_history(self.run_id, name))
            for name in names
        }

    def held_name(self, name: str) -> str:
        """Return the name of a metric in MLflow."""
        return metric_name(name)

    def close(self) -> None:
        """End the run with ``status``."""
        self._client.set_terminated(self.run_id, self.status)

    def _log_metrics(self, record: Scalars) -> None:
        entities = self._mlflow.entities
        milliseconds = int(record.time * 1000)
        metrics = [
            entities.Metric(metric_name(name), value, milliseconds, record.step)
            for name, value in (dict(record.values) | {"epoch": float(record.epoch)}).items()
            if metric_name(name) not in self._rejected
        ]
        # One request for all. Only if that fails, each is tried, which takes many.
        try:
            self._client.log_batch(self.run_id, metrics=metrics)
        except (self._mlflow.MlflowException, OSError):
            self._log_one_by_one(metrics)

    def _log_one_by_one(self, metrics: Sequence[Metric]) -> None:
        """Find the metrics that the store rejects, and log the others."""
        failed: dict[str, Exception] = {}
        for metric in metrics:
            try:
                self._client.log_batch(self.run_id, metrics=[metric])
            except (self._mlflow.MlflowException, OSError) as error:
                failed[metric.key] = error
        if len(failed) == len(metrics):  # The problem is the store, not the names.
            raise next(iter(failed.values()))
        for name, reason in failed.items():
            _log.warning("MLflow rejects the metric '%s', which is left out: %s", name, reason)
        self._rejected |= set(failed)

    def _log_parameters(self, record: Config) -> None:
        # MLflow never lets a parameter change: sending one again with a new value is an error.
        existing = self._client.get_run(self.run_id).data.params
        params = [
            self._mlflow.entities.Param(name, str(value)[:LONGEST_VALUE])
            for name, value in record.flat().items()
            if name not in existing
        ]
        for first in range(0, len(params), PARAMS_PER_REQUEST):
            self._client.log_batch(self.run_id, params=params[first : first + PARAMS_PER_REQUEST])

    def _log_file(self, name: str, step: int | None, suffix: str, content: bytes) -> None:
        # MLflow takes artifacts from files only.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{step or 0:08d}{suffix}"
            path.write_bytes(content)
            self._client.log_artifact(self.run_id, str(path), name)


def _repair_metrics(root: Path, run_id: str) -> None:
    """Remove half-written lines that a kill has left: MLflow cannot read a run with one."""
    if not re.fullmatch(r"[0-9A-Za-z_-]+", run_id):  # Of a file: not a path.
        return
    for folder in root.glob(f"*/{run_id}/metrics"):
        for path in [path for path in folder.rglob("*") if path.is_file()]:
            text = path.read_bytes()
            whole = text[: text.rfind(b"\n") + 1]
            if not whole:
                path.unlink()
            elif whole != text:
                write_bytes(path, whole)


def check_uri(uri: str) -> None:
    """Reject a URI that MLflow cannot write to, as far as can be seen without a network."""
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
    """Turn a metric's name into one that every store of MLflow accepts.

    Slashes after the first become dots. A directory store has a file per metric, and ``train/loss``
    cannot be a file and, for ``train/loss/max``, a folder.

    >>> metric_name("train/loss"), metric_name("train/loss/max"), metric_name("val/AR@100")
    ('train/loss', 'train/loss.max', 'val/AR_100')
    >>> metric_name("../up//x/")
    'up/x'
    """
    parts = [re.sub(r"[^\w\-. :]", "_", part) for part in name.split("/")]
    first, *rest = [part for part in parts if part.strip(".")] or ["_"]
    return (f"{first}/{'.'.join(rest)}" if rest else first)[:LONGEST_NAME]
