"""Optimizers and schedules as a config writes them: one, or several by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hookloop.config.build import arguments
from hookloop.config.parts.optimizers import (
    ONLY,
    OptimizerPart,
    is_named,
    read_optimizers,
    read_schedules,
)
from hookloop.config.parts.part import Part, PartReader
from hookloop.config.tree import Config

Write = Callable[..., Config]

MODEL = "model: proj.Net\n"


def names_in(model: torch.nn.Module, group: dict[str, Any]) -> list[str]:
    chosen = {id(parameter) for parameter in group["params"]}
    return [name for name, parameter in model.named_parameters() if id(parameter) in chosen]


def test_several_optimizers_share_the_model_by_pattern(write: Write) -> None:
    given: dict[str, Any] = arguments(
        write(
            MODEL + "train_data: proj.batches\nmax_epochs: 2\n"
            "optimizer:\n"
            "  lower: {type: SGD, lr: 1, params: ['body.*', 'norm.*']}\n"
            "  upper: {type: Adam, lr: 2, params: 'head.*'}\n"
            "schedule:\n"
            "  upper: {type: StepLR, step_size: 1, every: 1 epoch}\n"
        )
    )
    lower, upper = given["optimizer"]["lower"], given["optimizer"]["upper"]
    assert names_in(given["model"], upper.param_groups[0]) == ["head.weight", "head.bias"]
    assert len(lower.param_groups[0]["params"]) == 4
    assert given["schedule"]["upper"].scheduler.optimizer is upper
    assert str(given["schedule"]["upper"].every) == "1 epoch"


def test_an_optimizer_can_be_made_by_a_function_of_the_model(write: Write, project: Path) -> None:
    (project / "maker.py").write_text(
        "import torch\n"
        "def make(model, rate: float):\n"
        "    return torch.optim.SGD(model.head.parameters(), lr=rate)\n"
    )
    given: dict[str, Any] = arguments(write(f"{MODEL}optimizer: {{type: maker.make, rate: 0.5}}\n"))
    assert len(given["optimizer"].param_groups[0]["params"]) == 2


def reader_of(tree: dict[str, object]) -> PartReader:
    return PartReader(Config(tree, Path("a.yaml")))


def messages(reader: PartReader) -> list[str]:
    return [problem.message for problem in reader.problems]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": {"type": "SGD"}, "b": "Adam"}, True),
        ({"a": None}, True),
        ({"type": "SGD", "lr": 1}, False),
        ({"lr": 0.1}, False),
        ({}, False),
        ("SGD", False),
        (None, False),
    ],
)
def test_a_mapping_from_names_is_told_from_a_description(value: object, expected: bool) -> None:
    assert is_named(value) is expected


def test_a_single_optimizer_is_kept_with_its_patterns_and_groups() -> None:
    groups = [{"match": "*.bias", "lr": 2}, {"norms": True, "weight_decay": 0, "name": "norms"}]
    value = {"type": "SGD", "lr": 1, "params": "body.*", "groups": groups}
    reader = reader_of({"optimizer": value})
    read = read_optimizers(reader, ("optimizer",), value)
    assert messages(reader) == []
    optimizer = read[ONLY]
    assert isinstance(optimizer, OptimizerPart)
    assert optimizer.part.make is torch.optim.SGD
    assert optimizer.part.arguments == {"lr": 1.0}
    assert optimizer.params == ["body.*"]
    assert [(group.match, group.norms, group.options) for group in optimizer.groups] == [
        (["*.bias"], False, {"lr": 2.0}),
        ([], True, {"weight_decay": 0.0, "name": "norms"}),
    ]
    assert optimizer.groups[1].key == ("optimizer", "groups", 1)
    assert value["params"] == "body.*"  # The config itself is not changed.


def test_an_optimizer_object_is_used_as_it_is() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    assert read_optimizers(reader_of({}), ("optimizer",), optimizer) == {ONLY: optimizer}
    assert read_optimizers(reader_of({}), ("optimizer",), None) == {}


def test_a_schedule_has_its_interval_and_metric_apart_from_its_arguments() -> None:
    value = {"type": "StepLR", "step_size": 3, "every": "2 epochs", "metric": "val/loss"}
    reader = reader_of({"schedule": value})
    part = read_schedules(reader, ("schedule",), value, {ONLY: object()})[ONLY]
    assert messages(reader) == []
    assert isinstance(part, Part)
    assert part.arguments == {"step_size": 3}
    assert part.settings == {"every": "2 epochs", "metric": "val/loss"}
    assert part.supplied == {"optimizer"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"type": "StepLR", "step_size": 1},
            "schedule: give the optimizer that it drives, as a mapping from critic, generator.",
        ),
        (
            {"critc": {"type": "StepLR", "step_size": 1}},
            "schedule.critc: no optimizer is named 'critc'. Did you mean 'critic'?",
        ),
        (
            {"critic": {"type": "StepLR", "step_size": 1, "every": "3 min"}},
            "schedule.critic.every: a schedule steps by iterations or epochs, not by time.",
        ),
    ],
)
def test_a_schedule_belongs_to_one_of_several_optimizers(value: object, message: str) -> None:
    reader = reader_of({"schedule": value})
    read_schedules(reader, ("schedule",), value, {"critic": object(), "generator": object()})
    assert messages(reader) == [message]
