"""Hooks in the style of public projects have the effect that they have in the real MMEngine.

``scripts/record_mmengine.py`` makes the record; ``make downstream`` compares it with the real one.
"""

import json
from pathlib import Path

import pytest
import torch
from tests.alike import assert_alike
from tests.downstream import mmengine_hooks as project

from hookloop import Schedule, Trainer, dialects
from hookloop.hooks import StepSchedules

pytestmark = pytest.mark.slow

RECORD = json.loads(
    (Path(__file__).parents[3] / "tests" / "fixtures" / "mmengine_hooks.json").read_text()
)
# What a native run does in another way, with the page of the dialect as its reason.
OTHERWISE = {"FreezeHook"}


@pytest.fixture(autouse=True)
def aliases():
    with dialects.alias("mmengine"):
        yield


@pytest.mark.parametrize("name", project.HOOKS)
def test_a_hook_has_its_effect_in_the_runner(name):
    assert_alike(RECORD[name], json.loads(json.dumps(project.run_in_runner(name))))


class Size:
    """The mean of all outputs, as the metric of the runner computes it."""

    def reset(self):
        self.values = []

    def update(self, output, targets):
        self.values += output.sum(1).tolist()

    def compute(self):
        return sum(self.values) / len(self.values)


def run_in_trainer(name):
    options = project.HOOKS[name]
    hook = project.make_hooks()[name]()
    model = project.make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = None
    if "param_scheduler" in options:
        schedule = Schedule(torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5), "1 epoch")
        hook.steps_schedules = True
    limits = {"max_iters": options["iters"], "val_every": 3} if "iters" in options else {}
    trainer = Trainer(
        model,
        train_data=project.make_loader(**options.get("loader", {})),
        val_data=project.make_loader(),
        loss=torch.nn.functional.mse_loss,
        optimizer=optimizer,
        schedule=schedule,
        metrics={"size": Size()},
        hooks=[hook] if options.get("steps") is False else [hook, StepSchedules()],
        default_hooks=False,
        run_dir="run",
        seed=0,
        **(limits or {"max_epochs": 3}),
    )
    trainer.train()
    return project.result_of(hook, trainer.run.model)


@pytest.mark.parametrize("name", [name for name in project.HOOKS if name not in OTHERWISE])
def test_a_hook_has_the_same_effect_in_a_trainer(name):
    assert_alike(RECORD[name], json.loads(json.dumps(run_in_trainer(name))))


def test_nine_of_ten_hooks_are_compared_in_a_trainer():
    assert len(OTHERWISE) / len(project.HOOKS) < 0.1
