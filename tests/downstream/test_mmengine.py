"""With the real MMEngine installed: the record is true, and its own hooks run in our Trainer.

``make downstream`` runs this in an environment of its own; elsewhere it is skipped.
"""

import json
import time
from pathlib import Path

import pytest
import torch
from tests.alike import assert_alike
from tests.downstream import mmengine_hooks as project
from tests.downstream import mmengine_scenarios as scenarios
from tests.tiny import make_data, make_model, make_trainer, weights

pytest.importorskip("mmengine", reason="only `make downstream` installs it")
pytestmark = pytest.mark.filterwarnings("ignore")  # MMEngine warns often.

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORD = json.loads((FIXTURES / "mmengine.json").read_text())
HOOKS_RECORD = json.loads((FIXTURES / "mmengine_hooks.json").read_text())


@pytest.fixture(autouse=True)
def old_torch(monkeypatch):
    """Let MMEngine load its own files, and not sleep between passes."""
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def _plain(result):
    """Return a result as it is after it was recorded: tuples have become lists."""
    return json.loads(json.dumps(result))


@pytest.mark.parametrize("name", scenarios.SCENARIOS)
def test_the_record_is_what_mmengine_does(name):
    assert_alike(RECORD[name], _plain(scenarios.run(name)))


@pytest.mark.parametrize("name", project.HOOKS)
def test_the_record_of_hooks_is_what_mmengine_does(name):
    assert_alike(HOOKS_RECORD[name], _plain(project.run_in_runner(name)))


def test_mmengine_continues_from_its_checkpoint_as_recorded():
    path = FIXTURES / "mmengine_epoch_2.pth"
    assert_alike(RECORD["resumed"], _plain(scenarios.run_resumed(path)))


def accuracy_falls(output, targets):
    return torch.tensor(0.5)


def train(*hooks, epochs=3, **options):
    parts = {"val_data": make_data(), "max_epochs": epochs, "metrics": {"acc": accuracy_falls}}
    trainer = make_trainer(hooks=hooks, run_dir="run", **(parts | options))
    outcome = trainer.train()
    return trainer, outcome


def test_ema_averages_and_is_resumed():
    from mmengine.hooks import EMAHook

    from hookloop.hooks import SaveCheckpoint

    hook = EMAHook(momentum=0.1)
    trainer, _ = train(hook, SaveCheckpoint(keep=None), epochs=2)
    average = {k: v.clone() for k, v in hook.ema_model.module.state_dict().items()}
    raw = weights(trainer.run.model)
    assert not torch.equal(average["0.weight"], raw["0.weight"])
    saved = torch.load("run/epoch_2.pth", weights_only=True)
    assert torch.equal(saved["model"]["0.weight"], average["0.weight"])
    again = EMAHook(momentum=0.1)
    resumed = make_trainer(
        hooks=[again, SaveCheckpoint(keep=None)], run_dir="run", resume=True, max_epochs=3,
        val_data=make_data(), metrics={"acc": accuracy_falls},
    )  # fmt: skip
    seen = []
    resumed.on("before_train")(lambda run: seen.append(weights(run.model)))
    resumed.train()
    assert torch.equal(seen[0]["0.weight"], raw["0.weight"])
    assert int(again.ema_model.steps) == 9


def test_ema_is_that_of_the_native_hook():
    from mmengine.hooks import EMAHook

    from hookloop_mmengine.hooks import EMAHook as OurEMAHook

    found = []
    for kind in (EMAHook, OurEMAHook):
        trainer = make_trainer(
            hooks=[kind(momentum=0.1)], model=make_model(), val_data=make_data(), max_epochs=2
        )
        seen = []
        trainer.on("before_val_iter")(lambda run, seen=seen: seen.append(weights(run.model)))
        trainer.train()
        found.append(seen[-1])
    for name, value in found[0].items():
        assert torch.allclose(value, found[1][name], atol=1e-7)


def test_early_stopping_stops():
    from mmengine.hooks import EarlyStoppingHook

    trainer, outcome = train(EarlyStoppingHook(monitor="acc", patience=2), epochs=9)
    assert outcome.status == "stopped"
    assert "stop_training" in outcome.reason
    assert trainer.run.progress.epoch == 3


def test_profiler_writes_a_trace():
    from mmengine.hooks import ProfilerHook

    train(ProfilerHook(by_epoch=False, profile_times=2, json_trace_path="trace.json"))
    assert "traceEvents" in Path("trace.json").read_text()


def test_hooks_of_the_message_hub_run():
    from mmengine.hooks import IterTimerHook, RuntimeInfoHook

    trainer, _ = train(RuntimeInfoHook(), IterTimerHook())
    (facade,) = trainer.run._internals.shared.values()
    hub = facade.message_hub
    assert hub.get_scalar("train/lr").current() == 0.05
    assert hub.get_info("epoch") == 2
    assert len(hub.get_scalar("train/time").data[0]) == 9


def test_other_hooks_run():
    from mmengine.hooks import DistSamplerSeedHook, EmptyCacheHook, SyncBuffersHook

    hooks = [EmptyCacheHook(after_iter=True), SyncBuffersHook(), DistSamplerSeedHook()]
    _, outcome = train(*hooks)
    assert outcome.status == "completed"


def test_the_alias_leaves_an_installed_package_alone():
    from hookloop import dialects

    with dialects.alias("mmengine") as alias:
        import mmengine.hooks

        assert alias.packages == {}
        assert mmengine.hooks.Hook.__module__ == "mmengine.hooks.hook"
