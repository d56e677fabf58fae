"""Checkpoints in which one entry is not what a run saves end in an error of ours, or do no harm."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.tiny import make_classes, make_classifier

from hookloop import hooks
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
        config={"a": 1},
    )


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    run_dir = tmp_path_factory.mktemp("good") / "run"
    make(run_dir).train()
    checkpoint: dict[str, Any] = torch.load(run_dir / "epoch_1.pth", weights_only=True)
    return checkpoint


def paths(value: object, path: Path_ = (), depth: int = 4) -> Iterator[Path_]:
    """Yield the way to every entry; of a list or of many names the first one stands for all."""
    if path:
        yield path
    if isinstance(value, dict) and depth:
        names = list(value) if len(value) < 20 and path[:1] != ("metric_store",) else []
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


def test_whatever_entry_is_wrong_the_error_is_ours(good: dict[str, Any], tmp_path: Path) -> None:
    rejected = 0
    every_path = list(paths(good))
    assert len(every_path) > 60
    for number, path in enumerate(every_path):
        # Each entry with one of the wrong values, by turns: all of them take minutes.
        for wrong in [WRONG[number % len(WRONG)]]:
            run_dir = tmp_path / f"{rejected}-{number}-{id(wrong)}"
            run_dir.mkdir()
            torch.save(changed(good, path, wrong), run_dir / "epoch_1.pth")
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
    torch.save(changed(good, path, wrong), tmp_path / "epoch_1.pth")
    with pytest.raises(CheckpointError, match=words):
        make(tmp_path, resume=True).train()
