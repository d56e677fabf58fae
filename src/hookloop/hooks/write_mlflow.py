"""`WriteMLflow`: the run in MLflow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hookloop.every import Every
from hookloop.hooks._write_to_tracker import WriteToTracker
from hookloop.runs.files import reject_links
from hookloop.writers.base import Writer, require
from hookloop.writers.mlflow import MLflow, check_uri

if TYPE_CHECKING:
    from hookloop.core.run import Run

STATUS = {"failed": "FAILED", "interrupted": "KILLED"}


class WriteMLflow(WriteToTracker):
    """Write to MLflow: numbers, the config as parameters, pictures and tables as artefacts.

    A test and a resumed run continue the same MLflow run, and what a resume makes again is not sent
    again.

    Args:
        tracking_uri: A server, ``sqlite:///mlflow.db`` or ``file:<directory>``. By default what
            ``MLFLOW_TRACKING_URI`` says, otherwise ``mlruns`` in the run directory.
        every: How often to write in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all when not given.
        experiment: Name of the experiment; made when it is missing.
        run_name: How MLflow shows the run; the name of the run directory when not given.

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
        check_uri(self._chosen() or "")

    def target(self) -> str:
        return f"{self._chosen() or 'mlruns'} {self.experiment}"

    def open_tracker(self, run: Run) -> tuple[Writer, str]:
        reject_links(run.dir / "mlruns", run.dir)
        self._backend = MLflow(
            self._chosen() or f"file:{(run.dir / 'mlruns').absolute()}",
            self.experiment,
            run_name=self.run_name or run.dir.name,
            run_id=self.run_id,
        )
        return self._backend, self._backend.run_id

    def _chosen(self) -> str | None:
        return self.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")

    def after_run(self, run: Run) -> None:
        if self._backend is not None:
            self._backend.status = STATUS.get(run.outcome.status, "FINISHED")
        super().after_run(run)
