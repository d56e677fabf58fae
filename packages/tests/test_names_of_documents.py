"""Each hook that the five documents list trains, or is rejected before training with what to do."""

import pytest
import yaml

from hookloop import dialects
from hookloop.config.build import build
from hookloop.errors import HookloopError

BASE = """
model: proj.Net
train_data: proj.batches
val_data: proj.batches
loss: mse_loss
optimizer: {type: SGD, lr: 0.01}
max_epochs: 1
default_hooks: {console: null}
"""

# The tables and lists of the documents, with the arguments without which a constructor fails.
LISTED = {
    "emloop": {
        "ComputeStats": {"variables": ["loss"]}, "LogVariables": {}, "WriteCSV": {},
        "AccumulateVariables": {"variables": ["loss"]}, "LogProfile": {},
        "emloop_tensorflow.hooks.WriteTensorboard": {}, "SaveBest": {}, "CatchSigint": {},
        "StopAfter": {"epochs": 1},
    },
    "imix": {
        "AutogradAnomalyDetectHook": {}, "AutogradProfilerHook": {"wait": 0, "active": 1},
        "CheckPointHook": {"prefix": "model", "epoch_period": 1},
        "EvaluateHook": {"eval_function": {"ref": "proj.evaluate"}}, "IterationTimerHook": {},
        "LRSchedulerHook": {}, "OptimizerHook": {"grad_clip": {"max_norm": 1.0}},
        "Fp16OptimizerHook": {}, "PeriodicLogger": {}, "CommonMetricLoggerHook": {},
        "JSONLoggerHook": {}, "TensorboardLoggerHook": {},
    },
    "mmengine": {
        "RuntimeInfoHook": {}, "IterTimerHook": {}, "DistSamplerSeedHook": {}, "LoggerHook": {},
        "ParamSchedulerHook": {}, "CheckpointHook": {"interval": 1}, "EMAHook": {},
        "EmptyCacheHook": {}, "SyncBuffersHook": {}, "ProfilerHook": {},
    },
    "pointrix": {"LogHook": {}, "CheckPointHook": {}},
}  # fmt: skip

# What does not run in a config of this kind, and of what its message has to speak.
REJECTED = {
    ("emloop", "SaveBest"): "list ComputeStats",
    ("imix", "LRSchedulerHook"): "schedule",
    ("imix", "Fp16OptimizerHook"): r"precision='fp16'",
}

CASES = [(dialect, name) for dialect, names in LISTED.items() for name in names]


@pytest.fixture
def home(project, monkeypatch):
    monkeypatch.chdir(project)
    with (project / "proj.py").open("a") as file:
        file.write("\n\ndef evaluate():\n    return {'score': 0.5}\n")
    return project


def make(write, dialect, name, *, by_name):
    hook = {"type": name, **LISTED[dialect][name]}
    hook |= {} if by_name else {"dialect": dialect}
    return build(write(BASE + yaml.safe_dump({"hooks": [hook]})))


@pytest.mark.filterwarnings("ignore:.*[pP]rofiler.*", "ignore:Anomaly Detection")
@pytest.mark.parametrize(("dialect", "name"), CASES)
def test_a_hook_of_the_documents_trains_or_is_rejected_before(home, write, dialect, name):
    expected = REJECTED.get((dialect, name))
    if expected is None:
        trainer = make(write, dialect, name, by_name=False)
        assert trainer.train().status in ("completed", "stopped")
        assert trainer.run.progress.iter > 0
        return
    begun = []
    with pytest.raises(HookloopError, match=expected):  # noqa: PT012 - building or training
        trainer = make(write, dialect, name, by_name=False)
        trainer.on("before_train_iter")(begun.append)
        trainer.train()
    assert not begun


@pytest.mark.parametrize(("dialect", "name"), CASES)
def test_its_plain_name_is_found_or_its_dialects_are_named(home, write, dialect, name):
    owners = dialects.catalogued(name)
    if len(owners) < 2 and (dialect, name) not in REJECTED:
        make(write, dialect, name, by_name=True)
    elif len(owners) > 1:
        with pytest.raises(HookloopError, match=f"dialect: {next(iter(owners))}"):
            make(write, dialect, name, by_name=True)


@pytest.mark.parametrize("name", ["CommonMetricLoggerHook", "TensorboardLoggerHook"])
def test_what_a_dialect_keeps_for_its_hooks_is_not_reported_as_lost(home, write, name, caplog):
    make(write, "imix", name, by_name=False).train(max_epochs=2)
    assert "no checkpoint can hold" not in caplog.text
