"""`TransformersFacade`: what the callbacks of a run share; they are given its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookloop.dialects import (
    Facade,
    internals_of,
    plan_of,
)
from hookloop_callbacks.on_transformers.arguments import ArgumentsView
from hookloop_callbacks.on_transformers.companion import EndEpoch, EndStep, TransformersCompanion
from hookloop_callbacks.on_transformers.control import TrainerControl
from hookloop_callbacks.on_transformers.state import StateView

if TYPE_CHECKING:
    from hookloop import Run


class TransformersFacade(Facade):
    """The arguments of callbacks: ``args``, ``state``, ``control`` and the keywords."""

    role = "trainer"
    loggers = ("transformers",)

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.args = ArgumentsView(run, self)
        self.state = StateView(run, self)
        self.control = TrainerControl()
        self.metrics: dict[str, float] = {}
        self.keywords: dict[str, Any] = {}
        self.companion = TransformersCompanion(self)
        self._later = (EndStep(self.companion, self), EndEpoch(self.companion, self))

    def join(self, run: Run) -> None:
        """Add to the run what belongs to the dialect besides its callbacks."""
        if self.companion not in run.hooks:
            self.refresh()
            self.companion.prepare(run)
            plan_of(run).add(*self._later)
            self.companion.join(run)

    def refresh(self) -> None:
        """Collect what each event is given besides its own; at the start of a run and a pass."""
        run = self.run
        optimizers, schedules = run.optimizers, run.schedules
        self.keywords = {
            "model": run.model,
            "processing_class": run.config.get("processing_class"),
            # Transformers has one optimizer; of several, all are given, by name.
            "optimizer": run.optimizer if len(optimizers) == 1 else optimizers,
            "lr_scheduler": next(iter(schedules.values())).scheduler if schedules else None,
            "train_dataloader": None if run.train_data is None else run.train_data.data,
            "eval_dataloader": self._eval_data(),
        }

    def _eval_data(self) -> object:
        run = self.run
        others = {"test": internals_of(run).test_data, "predict": internals_of(run).predict_data}
        streams = others.get(run.phase, run.val_data)
        data = [source.data for source in streams.values()]
        # Transformers has one at a time; of several streams, all are given, by name.
        if len(data) > 1:
            return {name: source.data for name, source in streams.items()}
        return data[0] if data else None

    def note_best(self) -> None:
        """Remember the best metric, as Transformers does after the callbacks of a validation."""
        args: Any = self.args
        name = args.metric_for_best_model
        if name is None:
            return
        value = self.metrics.get(name if name.startswith("eval_") else f"eval_{name}")
        best = self.state.best_metric
        if value is not None and (
            best is None or (value > best if args.greater_is_better else value < best)
        ):
            self.state.best_metric, self.state.best_global_step = value, self.run.progress.iter
