"""Record what the real emloop does, for the tests of our dialect.

    make downstream     makes the environment and runs this script in it

It imports nothing of hookloop; what it writes is committed, so that the tests need no emloop.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
import tempfile
import types
from pathlib import Path

import ruamel.yaml

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def restore_yaml() -> None:
    """Restore the functions that newer versions of ruamel.yaml lack."""

    def load(text, *_, **__):
        return ruamel.yaml.YAML(typ="safe").load(text)

    def dump(data, stream=None, *_, **__):
        plain = json.loads(json.dumps(data, default=str))
        return ruamel.yaml.YAML(typ="safe").dump(plain, stream)

    ruamel.yaml.load, ruamel.yaml.dump = load, dump


def restore_resources() -> None:
    """Restore the module that newer versions of setuptools lack; emloop reads a version from it."""
    if importlib.util.find_spec("pkg_resources") is None:
        stub = types.ModuleType("pkg_resources")
        stub.get_distribution = lambda name: types.SimpleNamespace(version="0.2.1")
        sys.modules["pkg_resources"] = stub


restore_yaml()
restore_resources()

import emloop.hooks  # noqa: E402 - after the repairs
from emloop.main_loop import MainLoop  # noqa: E402
from emloop_scenarios import BATCH, SCENARIOS, batches, namespace, number, result  # noqa: E402


class Model:
    """Returns the numbers of a scenario."""

    input_names = ("ids",)
    output_names = ("loss",)

    def __init__(self, scenario):
        self.scenario = scenario
        self.saved = []
        self.calls = {}

    def run(self, batch, train, stream):
        count = len(self.scenario.losses[stream.name][0])
        call = self.calls.get(stream.name, 0)
        self.calls[stream.name] = call + 1
        loss = number(self.scenario.losses, stream.name, call // count, call % count)
        return {"loss": [loss] * BATCH, **self.scenario.variables}

    def save(self, name_suffix):
        self.saved.append(name_suffix)
        return name_suffix


def make_dataset(scenario):
    dataset = type("Dataset", (), {})()
    for stream in scenario.losses:
        setattr(dataset, f"{stream}_stream", lambda stream=stream: batches(scenario.losses, stream))
    return dataset


class Lines(logging.Handler):
    def __init__(self):
        super().__init__(logging.INFO)
        self.lines = []

    def emit(self, record):
        text = record.getMessage()
        if text.startswith("\t") and "T " not in text:
            self.lines.append(text)


def record(scenario):
    events, error, lines = [], None, Lines()
    model = Model(scenario)
    logging.getLogger().addHandler(lines)
    logging.getLogger().setLevel(logging.INFO)
    with tempfile.TemporaryDirectory() as out:
        hooks = scenario.hooks(namespace(emloop.hooks), model, out, events)
        for hook in hooks:
            if hasattr(hook, "_output_file"):
                hook._output_file = hook._output_file.format(output_dir=out)
        loop = MainLoop(
            model=model,
            dataset=make_dataset(scenario),
            hooks=hooks,
            extra_streams=[name for name in scenario.losses if name != "train"],
            skip_zeroth_epoch=scenario.skip_zeroth,
        )
        try:
            if scenario.evaluate:
                loop.run_evaluation(scenario.evaluate)
            else:
                loop.run_training()
        except Exception as caught:  # noqa: BLE001 - it is what the scenario is about
            error = caught
        logging.getLogger().removeHandler(lines)
        found = result(events, model.saved, error, scenario, out)
    return found | {"lines": lines.lines}


if __name__ == "__main__":
    recorded = {name: record(scenario) for name, scenario in SCENARIOS.items()}
    target = HERE / "recorded" / "emloop.json"
    target.parent.mkdir(exist_ok=True)
    rows = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in recorded.items()]
    target.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    sys.stdout.write(f"{len(recorded)} trainings of emloop written to {target}\n")
