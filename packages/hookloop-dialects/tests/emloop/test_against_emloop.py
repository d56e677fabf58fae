"""The dialect does what the real emloop did when tests/downstream/record_emloop.py was run."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.alike import assert_alike
from tests.downstream.emloop_scenarios import SCENARIOS, batches, namespace, number, result

import hookloop_dialects.emloop.hooks as ours
from hookloop import Trainer

RECORDED = json.loads(
    (Path(__file__).parents[4] / "tests" / "downstream" / "recorded" / "emloop.json").read_text()
)


class Model(torch.nn.Module):
    """Returns the numbers of a scenario."""

    def __init__(self, scenario):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.scenario = scenario
        self.saved = []
        self.calls = {}

    def step(self, run, batch):
        stream = {"val": "valid"}.get(run.stream, run.stream)
        count = len(self.scenario.losses[stream][0])
        call = self.calls.get(stream, 0)
        self.calls[stream] = call + 1
        loss = number(self.scenario.losses, stream, call // count, call % count)
        extra = {name: np.array(value) for name, value in self.scenario.variables.items()}
        return {"loss": self.weight * 0 + loss, **extra}

    def save(self, name_suffix):
        self.saved.append(name_suffix)
        return name_suffix


def train(scenario, out, caplog, hooks_of=ours, logger=None):
    """Make the training of a scenario in our Trainer, with the hooks of a package."""
    events, error = [], None
    model = Model(scenario)
    hooks = scenario.hooks(namespace(hooks_of), model, str(out), events)
    for hook in hooks:
        if hasattr(hook, "_output_file"):
            hook._output_file = hook._output_file.format(output_dir=out)
    if scenario.skip_zeroth:
        hooks.append(ours.SkipZerothEpoch())
    data = {
        name: [{"ids": torch.tensor(batch["ids"])} for batch in batches(scenario.losses, name)]
        for name in scenario.losses
    }
    others = {name: stream for name, stream in data.items() if name != "train"}
    trainer = Trainer(
        model,
        train_data=data["train"],
        val_data=others["valid"] if list(others) == ["valid"] else others or None,
        step=model.step,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        hooks=hooks,
        default_hooks=False,
        run_dir=out,
    )
    with caplog.at_level(logging.INFO, logger):
        try:
            trainer.validate() if scenario.evaluate else trainer.train()
        except Exception as caught:  # noqa: BLE001 - it is what the scenario is about
            error = caught
    found = result(events, model.saved, error, scenario, str(out))
    lines = [line for line in caplog.messages if line.startswith("\t") and "T " not in line]
    return found | {"lines": lines}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_training_goes_as_with_emloop(name, tmp_path, caplog):
    found = train(SCENARIOS[name], tmp_path / "run", caplog)
    assert_alike(RECORDED[name], json.loads(json.dumps(found)))


def test_every_scenario_was_recorded():
    assert list(SCENARIOS) == list(RECORDED)
