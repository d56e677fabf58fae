"""`bisect` names where two runs part and why, and says nothing about equal ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.integration.bisect_cells import make as cell
from tests.integration.bisect_cells import with_fault

from hookloop import HookloopError, Trainer, bisect, build, load
from hookloop.cli.main import cli
from hookloop.short_runs.sides import Side

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
EVERYDAY = ("sample", "called twice")


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


@pytest.mark.long
def test_fingerprints_narrow_the_way_where_both_runs_have_them():
    often = "{type: RecordFingerprints, every: 5}"
    planted = "{type: bisect_parts.Plant, what: weight, at: 23}"
    train("one", f"hooks={{prints: {often}}}")
    train("two", f"hooks={{prints: {often}, planted: {planted}}}")
    seen = found("one", "two")
    assert (seen.cause, seen.hook, seen.parted.iter) == ("hook", "planted", 23), seen
    assert seen.window == (21, 23)
    assert any("fingerprints" in one for one in seen.compared)


# --- equal pairs ----------------------------------------------------------------------------------

MADE = """
from torch import nn
from torch.nn import functional
from tests.integration.bisect_cells import make

def parts(directory):
    return make({name!r}, directory)
"""
CELLS = (
    "plain", "workers", "persistent workers", "accumulation", "average", "validation", "weighted",
    "own sampler", "own generator", "iterable", "clipping", "bf16", "cosine", "mix-up", "norms",
    "streams", "gan", "own step", "own update", "logical ranks",
)  # fmt: skip
QUICK = ("own update",)


@pytest.mark.parametrize(
    "name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.long) for one in CELLS]
)
def test_nothing_is_said_of_equal_pairs_and_a_fault_is_seen_in_each(name, place):
    make = f"made_{CELLS.index(name)}.py:parts"
    Path(make.partition(":")[0]).write_text(MADE.format(name=name))
    for run in ("one", "two"):
        Trainer(**cell(name, place / run), run_dir=run).train()
    recorded = found("one", "two", make=make)
    assert recorded.parted is None, recorded
    repeated = found("one", "two", make=make, iters="11:14")
    assert repeated.parted is None, repeated
    twice = found("one", make=make, iters="11:14")
    assert twice.parted is None, twice
    assert "lines" in twice.compared[-1]

    faulty = Path(f"faulty_{CELLS.index(name)}.py")
    faulty.write_text(
        MADE.format(name=name)
        + "\n\nfrom tests.integration.bisect_cells import with_fault\n"
        + "def faulty(directory):\n    return with_fault(parts(directory))\n"
    )
    Trainer(**with_fault(cell(name, place / "three")), run_dir="three").train()
    sides = [
        Side(run, run=run, make=made)
        for run, made in (("one", make), ("three", f"{faulty}:faulty"))
    ]
    seen = bisect(*sides, processes=False)
    assert seen.parted is not None
    assert (seen.parted.iter, seen.parted.kind) == (13, "weight"), seen
    assert (seen.cause, seen.hook) == ("hook", "fault"), seen


# --- what the records say, and processes ----------------------------------------------------------


def test_a_fault_that_no_program_has_is_told_from_those_of_the_program(monkeypatch):
    train("one")
    bisect_parts = sys.modules["bisect_parts"]
    monkeypatch.setattr(bisect_parts, "FAULT", 15)
    train("two")
    monkeypatch.setattr(bisect_parts, "FAULT", None)
    seen = found("one", "two")
    assert seen.cause == "not repeated", seen
    assert "two does not meet what it recorded" in seen.reason
    assert 11 <= seen.window[0] <= 15 <= seen.window[1] <= 20


def test_a_side_that_does_not_repeat_itself_is_named():
    Path("chance.yaml").write_text(
        CONFIG.format(home=PARTS.parent).replace("bisect_parts.Loss", "bisect_parts.Chance")
    )
    seen = found("chance.yaml", iters="1:4")
    assert (seen.cause, seen.parted.kind) == ("arithmetic", "output"), seen
    assert "differs from itself" in seen.reason


def test_a_resumed_run_is_equal_to_one_that_was_not_stopped():
    train("one")
    train("two", "max_iters=17")
    build(load("two", ["max_iters=30"]), resume=True, run_dir="two").train()
    assert found("one", "two").parted is None
    assert found("one", "two", iters="15:19").parted is None


def test_other_hooks_that_observe_are_no_parting():
    train("one")
    train("two", "hooks={average: AverageWeights, norms: {type: RecordNorms, every: 3}}")
    seen = found("one", "two", iters="1:8")
    assert seen.parted is None, seen


def test_a_setting_that_changes_no_number_is_told_and_is_no_parting():
    seen = found("config.yaml", settings=["optimizer.foreach=false"], iters="1:3")
    assert seen.parted is None
    assert [one.name for one in seen.settings] == ["0.foreach"]


def test_what_cannot_be_repeated_is_said(place):
    with pytest.raises(HookloopError, match="no run and no config 'nothing'"):
        found("nothing")
    (place / "empty").mkdir()
    with pytest.raises(HookloopError, match=r"no interventions.jsonl"):
        found("empty")
    with pytest.raises(HookloopError, match="no git repository"):
        found("config.yaml@abc")
    done = CliRunner().invoke(cli, ["bisect", "a", "b", "c"])
    assert done.exit_code == 2


@pytest.mark.slow
def test_two_commits_are_two_processes_and_the_code_is_the_cause(place):
    def git(*arguments):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments],
            check=True, capture_output=True,
        )  # fmt: skip

    code = PARTS.read_text()
    Path("committed.py").write_text(code)
    text = CONFIG.format(home=".").replace("bisect_parts", "committed")
    Path("config.yaml").write_text(text)
    git("init", "-q")
    git("add", "committed.py", "config.yaml")
    git("commit", "-qm", "one")
    Path("committed.py").write_text(code.replace("* self.scale", "* (self.scale * (1 + 4e-7))"))
    git("commit", "-qam", "two")
    done = CliRunner().invoke(
        cli, ["bisect", "config.yaml@HEAD~1", "config.yaml", "--iters", "1:3", "--json"]
    )
    assert done.exit_code == 1, done.output
    seen = json.loads(done.stdout)
    assert (seen["cause"], seen["parted"]["iter"], seen["parted"]["at"]) == (
        "code",
        1,
        "output of loss",
    )
    assert list(seen["evidence"]["unequal"]) == ["code"]
    assert set(seen["evidence"]["equal"]) >= {"ids", "batch", "input", "generator"}
    assert not list(place.glob("tree*"))


@pytest.mark.long
def test_another_version_of_a_package_is_the_cause(place, monkeypatch):
    for version, factor in (("1.0", 1.0), ("2.0", 1.0000004)):
        home = place / f"v{version}" / "site-packages"
        (home / f"scalelib-{version}.dist-info").mkdir(parents=True)
        (home / "scalelib.py").write_text(f"FACTOR = {factor}\n")
        python = place / f"python{version}"
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{home}" exec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(place / "v1.0" / "site-packages"))
    Path("scaled.py").write_text(
        "import scalelib\nfrom torch.nn import functional\n\n\ndef loss(output, targets):\n"
        "    return functional.cross_entropy(output, targets) * scalelib.FACTOR\n"
    )
    text = CONFIG.format(home=f"{PARTS.parent}, .").replace("bisect_parts.Loss", "scaled.loss")
    Path("config.yaml").write_text(text)
    seen = bisect("config.yaml", iters="1:2", python=place / "python2.0")
    assert (seen.cause, seen.parted.kind) == ("library", "loss"), seen
    assert seen.unequal["library"]["packages.scalelib"] == ["1.0", "2.0"]


@pytest.mark.long
def test_other_kernels_are_the_machine():
    train("one")
    seen = bisect("one", variables={"MKL_CBWR": "COMPATIBLE"}, iters="11:12")
    # Not every processor has other kernels.
    assert seen.parted is None or seen.cause == "machine", seen
    assert seen.parted is None or (seen.parted.iter, seen.parted.kind) == (11, "output")


def test_a_tree_of_files_is_not_imported_from_two_places(place):
    side = Side("x", tree=str(place / "tree"), root=str(place / "repo"))
    assert side.place(str(place / "repo" / "a" / "b.py")) == str(place / "tree" / "a" / "b.py")
    assert side.place(str(place / "elsewhere.py")) == str(place / "elsewhere.py")
