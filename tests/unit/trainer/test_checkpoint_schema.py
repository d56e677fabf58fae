"""Checkpoints in which one entry is not what a run saves end in an error of ours, or do no harm."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.names import epoch_file
from tests.tiny import make_classes, make_classifier

from hookloop import hooks
from hookloop.checkpoint.state.schema import check_optimizer
from hookloop.errors import CheckpointError, HookloopError
from hookloop.trainer.trainer import Trainer

GONE = object()
WRONG = (GONE, None, "text", -1, 10**30, math.nan, [], {}, [1], {1: 2}, torch.ones(3), True)

Path_ = tuple[Any, ...]


def make(run_dir: Path, *, resume: bool = False) -> Trainer:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return make_classifier(
        model=model,
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.StepLR(optimizer, 2),
        train_data=torch.utils.data.DataLoader(
            make_classes().dataset, batch_size=6, shuffle=True, generator=torch.Generator()
        ),
        hooks=[
            hooks.SaveCheckpoint("1 epochs", best="val/accuracy"),
            hooks.AverageWeights(),
            hooks.StopOnPlateau("val/accuracy", patience=50),
            hooks.WriteMetrics(every=1),
            hooks.TraceRun(),
            hooks.StepSchedules(),
        ],
        run_dir=run_dir,
        resume=resume,
        max_epochs=2 if resume else 1,
        setup={"config": {"a": 1}},
    )


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    run_dir = tmp_path_factory.mktemp("good") / "run"
    make(run_dir).train()
    checkpoint: dict[str, Any] = torch.load(run_dir / epoch_file(1), weights_only=True)
    return checkpoint


def paths(value: object, path: Path_ = (), depth: int = 4) -> Iterator[Path_]:
    """Yield the way to every entry; of a list or of many names the first one stands for all."""
    if path:
        yield path
    if isinstance(value, dict) and depth:
        names = list(value) if len(value) < 40 and path[:1] != ("metric_store",) else []
        for name in names or list(value)[:1]:
            yield from paths(value[name], (*path, name), depth - 1)
    elif isinstance(value, list | tuple) and value and depth:
        yield from paths(value[0], (*path, 0), depth - 1)


def changed(value: Any, path: Path_, new: object) -> Any:
    step, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[step] = changed(value[step], tuple(rest), new)
    elif new is GONE:
        del copy[step]
    else:
        copy[step] = new
    return copy


@pytest.mark.slow
def test_whatever_entry_is_wrong_the_error_is_ours(good: dict[str, Any], tmp_path: Path) -> None:
    rejected = 0
    every_path = list(paths(good))
    assert len(every_path) > 60
    for number, path in enumerate(every_path):
        # Each entry with one of the wrong values: all of them would take minutes.
        for wrong in [WRONG[number % len(WRONG)]]:
            run_dir = tmp_path / f"{rejected}-{number}-{id(wrong)}"
            run_dir.mkdir()
            torch.save(changed(good, path, wrong), run_dir / epoch_file(1))
            try:
                make(run_dir, resume=True).train()
            except HookloopError:
                rejected += 1
            except Exception as error:  # noqa: BLE001
                pytest.fail(f"{path} as {wrong!r}: {type(error).__name__}: {error}")
    assert rejected > 50


@pytest.mark.parametrize(
    ("path", "wrong", "words"),
    [
        (("progress", "epoch"), -3, "'progress.epoch' that is not what a run saves"),
        (("rng",), GONE, "has no 'rng'"),
        (("data", "position"), 10**30, "'data.position' that is not what a run saves"),
        (("optimizers", "default", "param_groups", 0, "lr"), "x", r"param_groups\[0\].lr"),
        (("hooks", "stop_on_plateau", "best"), "x", "the hook 'stop_on_plateau'"),
        (("schedules", "default", "place", "step"), 3, "schedules 'default'"),
    ],
)
def test_the_place_is_in_the_message(
    good: dict[str, Any], tmp_path: Path, path: Path_, wrong: object, words: str
) -> None:
    torch.save(changed(good, path, wrong), tmp_path / epoch_file(1))
    with pytest.raises(CheckpointError, match=words):
        make(tmp_path, resume=True).train()


class Wrapping(torch.optim.Optimizer):
    """An optimizer around another, whose state has a form of its own."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        self.inner = inner
        self.param_groups, self.defaults, self.state = inner.param_groups, inner.defaults, {}
        self.steps = 0

    def step(self, closure: Any = None) -> None:
        self.steps += 1
        self.inner.step()

    def state_dict(self) -> dict[str, Any]:
        return {"inner": self.inner.state_dict(), "steps": self.steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.inner.load_state_dict(state_dict["inner"])
        self.steps = state_dict["steps"]


def test_resumes_an_optimizer_whose_state_has_a_form_of_its_own(tmp_path: Path) -> None:
    for epochs in (1, 2):
        model = torch.nn.Linear(4, 3)
        optimizer = Wrapping(torch.optim.Adam(model.parameters()))
        trainer = make_classifier(
            model=model,
            optimizer=optimizer,
            max_epochs=epochs,
            hooks=[hooks.SaveCheckpoint("1 epochs")],
            run_dir=tmp_path / "run",
            resume="auto",
        )
        trainer.train()
    assert optimizer.steps == trainer.run.progress.iter


@pytest.mark.parametrize(
    "changes", [{"lr": torch.tensor(0.02)}, {"tag": "late"}, {"note": [1, "two"]}]
)
def test_takes_groups_that_users_change(changes: dict[str, Any]) -> None:
    def fresh() -> torch.optim.Optimizer:
        groups = [{"params": torch.nn.Linear(2, 2).parameters(), "tag": 1, "note": 2}]
        return torch.optim.Adam(groups, lr=0.01)

    optimizer = fresh()
    optimizer.param_groups[0].update(changes)

    check_optimizer(fresh(), optimizer.state_dict())


def test_resumes_a_checkpoint_of_the_first_version(tmp_path: Path, good: dict[str, Any]) -> None:
    added = ("side_randomness", "environment", "versions", "metric_store")
    first = {name: part for name, part in good.items() if name not in added}
    first["metrics"] = {
        name: {key: part for key, part in one.items() if key not in ("at", "start")}
        for name, one in good["metric_store"].items()
        if not name.startswith("train_epoch/")
    }
    (tmp_path / "run").mkdir()
    torch.save(first, tmp_path / "run" / epoch_file(1))

    trainer = make(tmp_path / "run", resume=True)
    outcome = trainer.train()

    assert (outcome.status, trainer.run.progress.epoch) == ("completed", 2)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    iterations = [json.loads(line)["iter"] for line in lines]
    done = good["progress"]["iter"]
    assert iterations == sorted(iterations)
    assert min(iterations) >= done
