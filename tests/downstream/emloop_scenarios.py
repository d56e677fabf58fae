"""Trainings that the real emloop and our dialect run in the same way; neither is imported here.

Each scenario lists hooks and the numbers that the model returns. A driver makes the training and
returns what can be compared: events, files, log lines, how it ended.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

BATCH = 2  # Examples per batch.


@dataclass
class Scenario:
    """A training.

    Attributes:
        hooks: Makes the hooks, of the API (`hooks`, `AbstractHook`, `TrainingTerminated`), the
            model, the output directory and a list for events.
        losses: By stream: for each pass over it, the loss of each batch; the last pass is repeated.
        variables: Further outputs of every batch.
        skip_zeroth: Whether to begin with the training.
        evaluate: The stream to evaluate, instead of training.
        files: Which files to compare.
    """

    hooks: Callable[[Any, Any, str, list[Any]], list[Any]]
    losses: dict[str, list[list[float]]] = field(
        default_factory=lambda: {"train": [[3.0, 2.0, 1.0]], "valid": [[1.5]]}
    )
    variables: dict[str, list[Any]] = field(default_factory=dict)
    skip_zeroth: bool = False
    evaluate: str | None = None
    files: tuple[str, ...] = ()


def number(losses: dict[str, list[list[float]]], stream: str, turn: int, batch: int) -> float:
    passes = losses[stream]
    return passes[min(turn, len(passes) - 1)][batch]


def batches(losses: dict[str, list[list[float]]], stream: str) -> list[dict[str, list[int]]]:
    count = len(losses[stream][0])
    return [{"ids": [BATCH * index + k for k in range(BATCH)]} for index in range(count)]


def tracer(api: Any, events: list[Any], name: str = "") -> Any:
    """A hook that writes every event down."""

    class Trace(api.AbstractHook):
        def __init__(self) -> None:
            super().__init__()

        def note(self, event: str, *details: Any) -> None:
            events.append([f"{name}{event}", *details])

        def before_training(self) -> None:
            self.note("before_training")

        def after_batch(self, stream_name: str, batch_data: Any) -> None:
            loss = [round(float(one), 5) for one in batch_data["loss"]]
            self.note("after_batch", stream_name, loss)

        def after_epoch(self, epoch_id: int, epoch_data: Any) -> None:
            self.note("after_epoch", epoch_id, list(epoch_data))

        def after_epoch_profile(self, epoch_id: int, profile: Any, streams: list[str]) -> None:
            kept = {key: len(some) for key, some in profile.items() if "eval_batch" in key}
            self.note("after_epoch_profile", epoch_id, dict(sorted(kept.items())), streams)

        def after_training(self, success: bool) -> None:
            self.note("after_training", success)

    return Trace()


def raiser(api: Any, at: str, when: int, error: Callable[[str], BaseException]) -> Any:
    """A hook that raises at the n-th call of an event."""

    class Raise(api.AbstractHook):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def raise_when_due(self) -> None:
            self.calls += 1
            if self.calls == when:
                raise error(f"at {at} {when}")

        def after_batch(self, **_: Any) -> None:
            if at == "after_batch":
                self.raise_when_due()

        def after_epoch(self, **_: Any) -> None:
            if at == "after_epoch":
                self.raise_when_due()

    return Raise()


def _traced(*inner: Callable[..., Any]) -> Callable[[Any, Any, str, list[Any]], list[Any]]:
    """Hooks between two tracers, so that order shows."""

    def hooks(api: Any, model: Any, output_dir: str, events: list[Any]) -> list[Any]:
        made = [make(api, model, output_dir) for make in inner]
        return [tracer(api, events, "first."), *made, tracer(api, events, "last.")]

    return hooks


def _hook(name: str, **arguments: Any) -> Callable[..., Any]:
    def make(api: Any, model: Any, output_dir: str) -> Any:
        supplied = {"model": model, "dataset": None, "output_dir": output_dir}
        return getattr(api.hooks, name)(**supplied | arguments)

    return make


def _scenarios() -> dict[str, Scenario]:
    stop = _hook("StopAfter", epochs=2)
    stats = _hook("ComputeStats", variables=["loss"])
    table = {
        "trace": Scenario(_traced(stop)),
        "trace without zeroth epoch": Scenario(_traced(stop), skip_zeroth=True),
        "trace without other streams": Scenario(_traced(stop), {"train": [[1.0, 2.0]]}),
        "trace with two other streams": Scenario(
            _traced(stop), {"train": [[1.0]], "valid": [[2.0]], "extra": [[3.0, 4.0]]}
        ),
        "trace of an evaluation": Scenario(_traced(), evaluate="valid"),
        "limit 0 stops at once": Scenario(_traced(_hook("StopAfter", epochs=0))),
        "statistics": Scenario(
            _traced(
                _hook("ComputeStats", variables=["loss", {"score": ["min", "max", "nancount"]}]),
                _hook("LogVariables"),
                _hook("WriteCSV"),
                stop,
            ),
            {"train": [[3.0, 2.0], [1.0, 0.5], [0.25, 0.5]], "valid": [[4.0], [2.0], [3.0]]},
            {"score": [0.5, 1.5]},
            files=("training.csv",),
        ),
        "csv of chosen variables": Scenario(
            _traced(
                stats,
                _hook("WriteCSV", variables=["loss"], delimiter=";", output_file="a.csv"),
                stop,
            ),
            files=("a.csv",),
        ),
        "save latest and every second": Scenario(
            _traced(
                _hook("SaveEvery", n_epochs=2), _hook("SaveLatest"), _hook("StopAfter", epochs=3)
            )
        ),
        "check passes": Scenario(
            _traced(stats, _hook("Check", variable="loss", required_min_value=2.5, max_epoch=4)),
            {"train": [[1.0]], "valid": [[1.0], [2.0], [3.0]]},
        ),
        "check fails": Scenario(
            _traced(stats, _hook("Check", variable="loss", required_min_value=9, max_epoch=2)),
        ),
        "logits": Scenario(
            _traced(
                _hook(
                    "LogitsToCsv",
                    variable="logits",
                    class_names=["a", "b"],
                    id_variable="ids",
                    output_file="{output_dir}/logits.csv",
                )
            ),
            variables={"logits": [[0.25, 0.75], [1.0, 0.0]]},
            evaluate="valid",
            files=("logits.csv",),
        ),
        "classification": Scenario(
            _traced(
                _hook("ClassificationMetrics", predicted_variable="said", gt_variable="true"),
                _hook(
                    "ClassificationMetrics",
                    predicted_variable="said",
                    gt_variable="true",
                    f1_average="binary",
                    var_prefix="one_",
                ),
                _hook("LogVariables", on_unknown_type="ignore"),
            ),
            variables={"said": [1, 1], "true": [0, 1]},
            evaluate="valid",
        ),
    }
    for at, when in itertools.product(("after_batch", "after_epoch"), (1, 2, 4, 5, 8)):
        table[f"termination at {at} {when}"] = Scenario(
            _traced(_raising(at, when, "TrainingTerminated"), _hook("StopAfter", epochs=9))
        )
        table[f"failure at {at} {when}"] = Scenario(
            _traced(_raising(at, when, "RuntimeError"), _hook("StopAfter", epochs=9))
        )
    for limit in (1, 2, 3, 4, 7):
        table[f"stop after {limit} iterations"] = Scenario(
            _traced(_hook("StopAfter", iterations=limit))
        )
    return table | _best() | _plateaus() | _nans()


def _raising(at: str, when: int, kind: str) -> Callable[..., Any]:
    def make(api: Any, model: Any, output_dir: str) -> Any:
        error = RuntimeError if kind == "RuntimeError" else api.TrainingTerminated
        return raiser(api, at, when, error)

    return make


CURVES = {
    "falling": [5.0, 4.0, 3.0, 2.0, 1.0],
    "rising": [1.0, 2.0, 3.0, 4.0, 5.0],
    "valley": [3.0, 2.0, 1.0, 2.0, 3.0],
    "flat": [2.0, 2.0, 2.0, 2.0, 2.0],
    "jumping": [2.0, 5.0, 1.0, 4.0, 0.5],
}


def _curve(values: list[float]) -> dict[str, list[list[float]]]:
    return {"train": [[1.0]], "valid": [[value] for value in values]}


def _best() -> dict[str, Scenario]:
    stats, stop = _hook("ComputeStats", variables=["loss"]), _hook("StopAfter", epochs=4)
    return {
        f"best {condition} of {curve}": Scenario(
            _traced(stats, _hook("SaveBest", condition=condition), stop), _curve(values)
        )
        for (curve, values), condition in itertools.product(CURVES.items(), ("min", "max"))
    }


def _plateaus() -> dict[str, Scenario]:
    return {
        f"plateau {long}/{short} {objective} of {curve}": Scenario(
            _traced(
                _hook("StopOnPlateau", long_term=long, short_term=short, objective=objective),
                _hook("StopAfter", epochs=8),
            ),
            _curve(values),
        )
        for (curve, values), objective, (long, short) in itertools.product(
            CURVES.items(), ("min", "max"), ((3, 1), (4, 2))
        )
    }


def _nans() -> dict[str, Scenario]:
    nan, inf = float("nan"), float("inf")
    stats, stop = _hook("ComputeStats", variables=["loss"]), _hook("StopAfter", epochs=3)
    return {
        f"not finite: {bad}, {arguments}": Scenario(
            _traced(stats, _hook("StopOnNaN", **arguments), stop), _curve([1.0, 1.0, bad])
        )
        for bad, arguments in itertools.product(
            (nan, inf),
            ({}, {"stop_on_inf": True}, {"after_batch": True, "variables": ["loss"]}),
        )
    }


SCENARIOS = _scenarios()


def result(
    events: list[Any], saved: list[str], error: BaseException | None, scenario: Scenario, out: str
) -> dict[str, Any]:
    """Bring the outcome of a training to plain values."""
    return {
        "events": events,
        "saved": saved,
        "error": None if error is None else type(error).__name__,
        "files": {name: (Path(out) / name).read_text() for name in scenario.files},
    }


def namespace(hooks: Any) -> SimpleNamespace:
    return SimpleNamespace(
        hooks=hooks, AbstractHook=hooks.AbstractHook, TrainingTerminated=hooks.TrainingTerminated
    )
