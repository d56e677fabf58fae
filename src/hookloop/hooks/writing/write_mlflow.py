"""`WriteMLflow`: the numbers of a run in MLflow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hookloop.every import Every
from hookloop.hooks.writing._write_to_tracker import WriteToTracker
from hookloop.runs.files import reject_links
from hookloop.writers.base import Writer, require
from hookloop.writers.mlflow import MLflow, check_uri

if TYPE_CHECKING:
    from hookloop.engine.run import Run

# How MLflow calls the outcomes of a run; all others are FINISHED.
STATUS = {"failed": "FAILED", "interrupted": "KILLED"}


class WriteMLflow(WriteToTracker):
    """Write to MLflow: numbers, the config as parameters, images and tables as artifacts.

    A test and a resumed run continue the same MLflow run. A resume does not send again what MLflow
    already has.

    Args:
        tracking_uri: A server, ``sqlite:///mlflow.db`` or ``file:<directory>``. By default
            ``MLFLOW_TRACKING_URI``, or ``mlruns`` in the run directory if that is not set.
        every: Interval in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all by default.
        experiment: Name of the experiment; created if it is missing.
        run_name: The name of the run in MLflow; the name of the run directory by default.

    Example:
        >>> WriteMLflow(experiment="digits").experiment
        'digits'
    """

    def __init__(
        self,
        tracking_uri: str | None = None,
        every: Every | int | str = 50,
        *,
        metrics: Sequence[str] | None = None,
        experiment: str = "hookloop",
        run_name: str | None = None,
    ) -> None:
        require("mlflow", extra="mlflow", who="WriteMLflow")
        super().__init__(every, metrics)
        self.tracking_uri = tracking_uri
        self.experiment = experiment
        self.run_name = run_name
        self._backend: MLflow | None = None

    def check_setup(self) -> None:
        check_uri(self._uri() or "")  # Without a URI it is the run directory.

    def target(self) -> str:
        return f"{self._uri() or 'mlruns'} {self.experiment}"

    def open_tracker(self, run: Run) -> tuple[Writer, str]:
        reject_links(run.dir / "mlruns", run.dir)
        self._backend = MLflow(
            self._uri() or f"file:{(run.dir / 'mlruns').absolute()}",
            self.experiment,
            run_name=self.run_name or run.dir.name,
            run_id=self.run_id,
        )
        return self._backend, self._backend.run_id

    def _uri(self) -> str | None:
        return self.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")

    def after_run(self, run: Run) -> None:
        # It is sent when the writer is closed, which is after the last hook.
        if self._backend is not None:
            self._backend.status = STATUS.get(run.outcome.status, "FINISHED")
        super().after_run(run)
