"""`bisect` names where two runs part and why, and says nothing about equal ones."""

from pathlib import Path

import pytest

from hookloop import bisect, build, load

PARTS = Path(__file__).with_name("bisect_parts.py")
ITERS, EVERY = 30, 10

CONFIG = """
import_path: [{home}]
model: {{type: bisect_parts.Net}}
train_data: {{type: bisect_parts.loader}}
loss: {{type: bisect_parts.Loss}}
optimizer: {{type: SGD, lr: 0.05, momentum: 0.9}}
seed: 3
max_iters: 30
hooks: {{average: AverageWeights}}
default_hooks:
  console: null
  checkpoint: {{type: SaveCheckpoint, every: 10 iters, keep: null}}
  metrics: {{type: WriteMetrics, every: 5}}
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG.format(home=PARTS.parent))
    return tmp_path


def train(name, *overrides):
    build(load("config.yaml", list(overrides)), run_dir=name).train()
    return name


def plant(what, at=13):
    planted = f"{{type: bisect_parts.Plant, what: {what}, at: {at}}}"
    return f"hooks={{average: AverageWeights, planted: {planted}}}"


def found(*sides, **options):
    return bisect(*sides, processes=False, **options)


PLANTED = {
    "sample": (["train_data.flip=7"], "data", "batch", None),
    "label": (["train_data.label=7"], "data", "batch", None),
    "ids": (["train_data.backward=true"], "data", "ids", None),
    "order": (["train_data.generator=5"], "data", "ids", None),
    "dropout": (["model.drop=0.25"], "config", "input", "drop"),
    "rate": (["optimizer.lr=0.04"], "config", "weight", "0.lr"),
    "seed": (["seed=4"], "config", "generator", None),
    "called twice": (["model.second=1e-6"], "config", "output", "block.second"),
    "loss by config": (["loss.scale=1.0000004"], "config", "output", "loss.scale"),
}
HOOKS = {
    "weight": ("weight", "b.weight"),
    "gradient": ("gradient", "b.weight"),
    "state of a hook": ("hook", "average.averaged.b.weight"),
    "generator": ("generator", "torch"),
    "state of the optimizer": ("optimizer", "b.weight.momentum_buffer"),
    "buffer": ("buffer", "n.running_var"),
}
EVERYDAY = ("sample", "ids", "rate", "called twice")


@pytest.mark.parametrize(
    "name",
    [one if one in EVERYDAY else pytest.param(one, marks=pytest.mark.long) for one in PLANTED],
)
def test_what_a_config_changes_is_found(name):
    settings, cause, kind, setting = PLANTED[name]
    seen = found("config.yaml", settings=settings, iters="1:12")
    assert seen.parted is not None
    assert (seen.cause, seen.parted.kind) == (cause, kind), seen
    assert (seen.setting and seen.setting.name) == setting
    if name == "called twice":
        assert seen.parted.at == "output of block (call 2)"
    if kind == "batch":
        assert "ids" in seen.equal
        assert 1 <= seen.parted.iter <= 12


@pytest.mark.parametrize(
    "name", ["weight", *(pytest.param(one, marks=pytest.mark.long) for one in [*HOOKS][1:])]
)
def test_what_a_hook_does_to_a_recorded_run_is_found_and_the_hook_is_named(name):
    train("one")
    train("two", plant(f"'{name}'"))
    seen = found("one", "two")
    kind, what = HOOKS[name]
    assert seen.parted is not None
    # At the end of an iteration, a hook sees it as completed.
    assert (seen.parted.kind, seen.parted.iter) == (kind, 13), seen
    assert seen.parted.name.startswith(what)
    assert (seen.cause, seen.hook) == ("hook", "planted"), seen
    assert any("checkpoints" in one for one in seen.compared)
    assert seen.window[0] == 11  # Not from the beginning.
