"""An audit finds each edit of a run, and nothing in an honest one."""

import json
import shutil

import pytest
from click.testing import CliRunner
from tests.integration.test_replay import parts

from hookloop import Trainer, audit, hooks
from hookloop.cli.main import cli
from hookloop.runs import RunDir
from hookloop.runs.fingerprints import FIRST, link
from hookloop.short_runs.edits import edit_run

SETTINGS = {"max_iters": 40}


def make(run_dir=None, **options):
    given = parts(run_dir, **(SETTINGS | options))
    return given | {"hooks": [hooks.RecordFingerprints(every=5), *options.get("hooks", [])]}


def train(run_dir, **options):
    Trainer(**make(**options), run_dir=run_dir).train()
    return run_dir


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def write(file, lines):
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def chain(run, lines):
    """Write fingerprints with a chain and a root that belong to them."""
    before = FIRST
    for line in lines:
        line["previous"] = before
        line["chain"] = before = link(line)
    write(run / "fingerprints.jsonl", lines)
    summary = RunDir(run).read_summary()
    RunDir(run).write_summary({**summary, "root": before})


def edit_metric(run, other):
    edit_run(run, "metrics")


def edit_weight(run, other):
    edit_run(run, "weights")


def edit_batch(run, other):
    lines = lines_of(run / "fingerprints.jsonl")
    lines[3]["samples"] = "0" * 16
    write(run / "fingerprints.jsonl", lines)


def cut_out(run, other):
    lines = lines_of(run / "metrics.jsonl")
    write(run / "metrics.jsonl", [line for line in lines if line["iter"] != 15])


def splice(run, other):
    lines = lines_of(run / "metrics.jsonl")
    theirs = {line["iter"]: line for line in lines_of(other / "metrics.jsonl")}
    write(
        run / "metrics.jsonl",
        [theirs.get(x["iter"], x) if 10 < x["iter"] < 20 else x for x in lines],
    )


def repeat(run, other):
    lines = lines_of(run / "metrics.jsonl")
    write(run / "metrics.jsonl", [*lines[:3], lines[2], *lines[3:]])


def reorder(run, other):
    lines = lines_of(run / "metrics.jsonl")
    write(run / "metrics.jsonl", [*lines[:2], lines[4], lines[3], lines[2], *lines[5:]])


def swap_checkpoint(run, other):
    shutil.copy(run / "iter_10.pth", run / "iter_20.pth")


def take_tail(run, other):
    shutil.copy(other / "iter_40.pth", run / "iter_40.pth")
    shutil.copy(other / "checkpoints.json", run / "checkpoints.json")
    own, theirs = (lines_of(one / "metrics.jsonl") for one in (run, other))
    write(
        run / "metrics.jsonl",
        [x for x in own if x["iter"] <= 30] + [x for x in theirs if x["iter"] > 30],
    )


def chain_again(run, other):
    lines = lines_of(run / "fingerprints.jsonl")
    lines[3]["weights"] = "0" * 16
    chain(run, lines)


EDITS = [
    edit_metric, edit_weight, edit_batch, cut_out, splice, repeat, reorder, swap_checkpoint,
    take_tail, chain_again,
]  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    home = tmp_path_factory.mktemp("honest")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)  # Each test has a directory of its own, outside of any repository.
        return train(home / "run"), train(home / "other", seed=9)


@pytest.mark.slow
@pytest.mark.parametrize("edit", EDITS, ids=lambda one: one.__name__)
def test_each_edit_is_found(edit, honest, tmp_path):
    run, other = honest
    shutil.copytree(run, tmp_path / "run")
    edit(tmp_path / "run", other)
    found = audit(tmp_path / "run", segments=9, make=make)
    assert found.problems or found.failed
    assert found.count == 4


@pytest.mark.slow
def test_an_honest_run_holds(honest):
    found = audit(honest[0], segments=9, make=make)
    assert not found.problems and not found.failed and not found.skipped
    assert [(one.first, one.last) for one in found.segments] == [
        (1, 10), (11, 20), (21, 30), (31, 40),
    ]  # fmt: skip
    assert audit(honest[0], segments=1, make=make, root=found.root).problems == []
    assert audit(honest[0], segments=1, make=make, root="0" * 16).problems


CONFIG = """
import_path: ['.']
model: {type: own.net}
train_data: {type: own.data}
loss: torch.nn.functional.cross_entropy
optimizer: {type: torch.optim.SGD, lr: 0.05}
max_iters: 30
seed: 3
run_dir: run
default_hooks: {checkpoint: {type: SaveCheckpoint, every: 10 iters, keep: null}}
hooks: [{type: RecordFingerprints, every: 5}]
"""
OWN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def net():
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Linear(8, 3))

def data():
    inputs = torch.randn(64, 6, generator=torch.Generator().manual_seed(1))
    return DataLoader(TensorDataset(inputs, inputs[:, :3].argmax(1)), 8, shuffle=True)
"""


@pytest.mark.slow
def test_the_command_finds_an_edited_config_and_seed(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "config.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    assert runner.invoke(cli, ["train", "config.yaml"]).exit_code == 0
    shown = runner.invoke(cli, ["audit", "run", "--segments", "2", "--json"])
    told = json.loads(shown.stdout)
    assert shown.exit_code == 0, shown.output
    assert (told["checked"], told["of"], told["chance"]["one"]) == (2, 3, 0.667)
    for edited in ("lr: 0.06", "seed: 4"):
        shutil.copytree("run", "copy")
        before = "lr: 0.05" if edited.startswith("lr") else "seed: 3"
        file = tmp_path / "copy" / "config.yaml"
        file.write_text(file.read_text().replace(before, edited))
        shown = runner.invoke(cli, ["audit", "copy", "--segments", "2"])
        assert shown.exit_code == 1 and "config.yaml" in shown.output
        # In the record as well: then only the stretch that is computed again can show it.
        record = tmp_path / "copy" / "interventions.jsonl"
        name, value = edited.split(": ")
        record.write_text(
            record.read_text().replace(
                f'"{before.split(": ")[0]}": {before.split(": ")[1]}', f'"{name}": {value}'
            )
        )
        shown = runner.invoke(cli, ["audit", "copy", "--segments", "2"])
        assert shown.exit_code == 1 and "iterations 1 to 10" in shown.output
        shutil.rmtree("copy")
