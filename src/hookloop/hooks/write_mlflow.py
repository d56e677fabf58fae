"""`WriteMLflow`: the run in MLflow."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from hookloop.every import Every
from hookloop.hooks.write_to import WriteTo
from hookloop.runs.files import reject_links
from hookloop.writers.base import Writer, require
from hookloop.writers.mlflow import MLflow

if TYPE_CHECKING:
    from hookloop.core.run import Run

STATUS = {"failed": "FAILED", "interrupted": "KILLED"}


class WriteMLflow(WriteTo):
    """Write to MLflow: numbers, the config as parameters, pictures and tables as artefacts.

    A resumed run goes on with the same MLflow run.

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
        self._set_up(every, metrics)
        self.tracking_uri = tracking_uri
        self.experiment = experiment
        self.run_name = run_name
        self._run_id: str | None = None
        self._backend: MLflow | None = None

    def state_dict(self) -> dict[str, object]:
        return {"run_id": self._run_id}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._run_id = cast("str | None", state["run_id"])

    def open(self, run: Run) -> Writer:
        reject_links(run.dir / "mlruns", run.dir)
        chosen = self.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
        self._backend = MLflow(
            chosen or f"file:{(run.dir / 'mlruns').absolute()}",
            self.experiment,
            run_name=self.run_name or run.dir.name,
            run_id=self._run_id,
        )
        self._run_id = self._backend.run_id
        return self._backend

    def after_run(self, run: Run) -> None:
        if self._backend is not None:
            self._backend.status = STATUS.get(run.outcome.status, "FINISHED")
        super().after_run(run)
