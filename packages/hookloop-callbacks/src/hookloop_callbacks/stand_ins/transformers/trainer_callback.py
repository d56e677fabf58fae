# ruff: noqa: ANN401 - whatever a loop passes
"""`TrainerCallback`: the base class, with the methods of Transformers', which do nothing."""

from __future__ import annotations

from typing import Any, Self

from hookloop_callbacks.on_transformers.control import TrainerControl
from hookloop_callbacks.on_transformers.state import StateView as TrainerState

__all__ = [
    "EarlyStoppingCallback",
    "ExportableState",
    "PrinterCallback",
    "TrainerCallback",
    "TrainerControl",
    "TrainerState",
]


class ExportableState:
    """What has a state that checkpoints keep."""

    def state(self) -> dict[str, Any]:
        """Return ``args`` of the constructor, and ``attributes``."""
        raise NotImplementedError("write a method `state`")

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Make one from its state."""
        made = cls(**state["args"])
        for name, value in state["attributes"].items():
            setattr(made, name, value)
        return made


class TrainerCallback:
    """Derive from it, and override what you need."""


def _nothing(self: TrainerCallback, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
    """Do nothing."""


EVENTS = (
    "on_init_end", "on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end",
    "on_step_begin", "on_pre_optimizer_step", "on_optimizer_step", "on_substep_end",
    "on_step_end", "on_evaluate", "on_predict", "on_save", "on_log", "on_prediction_step",
    "on_push_begin",
)  # fmt: skip

for _event in EVENTS:
    setattr(TrainerCallback, _event, _nothing)


class PrinterCallback(TrainerCallback):
    """Prints what is logged."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Print."""
        if state.is_local_process_zero:
            shown = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in (logs or {}).items()}
            shown.pop("total_flos", None)
            print(shown)  # noqa: T201 - its duty


class EarlyStoppingCallback(TrainerCallback, ExportableState):
    """Ends the training when a metric has not improved for some validations.

    ``args.metric_for_best_model`` says which: an entry of the run's config.

    Args:
        early_stopping_patience: Validations without improvement before the training ends.
        early_stopping_threshold: What counts as an improvement.
    """

    def __init__(
        self, early_stopping_patience: int = 1, early_stopping_threshold: float | None = 0.0
    ) -> None:
        self.early_stopping_patience = early_stopping_patience
        self.early_stopping_threshold = early_stopping_threshold
        self.early_stopping_patience_counter = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Reject a run in which it could never act."""
        if args.metric_for_best_model is None:
            raise AssertionError(
                "EarlyStoppingCallback needs metric_for_best_model: "
                "Trainer(setup=Setup(config={'metric_for_best_model': 'eval_loss'}))."
            )
        if args.eval_strategy == "no":
            raise AssertionError("EarlyStoppingCallback needs validations: give val_data=.")

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any
    ) -> None:
        """Compare the metric with the best so far."""
        name = args.metric_for_best_model
        name = name if name.startswith("eval_") else f"eval_{name}"
        if name not in metrics:
            raise KeyError(f"{name}: metric_for_best_model is one of {', '.join(metrics)}")
        gain = metrics[name] - (state.best_metric or 0.0)
        gain = gain if args.greater_is_better else -gain
        if state.best_metric is None or gain > (self.early_stopping_threshold or 0.0):
            self.early_stopping_patience_counter = 0
        else:
            self.early_stopping_patience_counter += 1
        if self.early_stopping_patience_counter >= self.early_stopping_patience:
            control.should_training_stop = True

    def state(self) -> dict[str, Any]:
        """Return the patience that is used up."""
        names = ("early_stopping_patience", "early_stopping_threshold")
        counter = "early_stopping_patience_counter"
        return {
            "args": {name: getattr(self, name) for name in names},
            "attributes": {counter: getattr(self, counter)},
        }
