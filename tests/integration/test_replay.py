"""A replay repeats any iteration of a run bit for bit, whatever the run is made of."""

import json
import random
import sys
from functools import partial

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from tests.ranks import on_ranks
from torch import nn
from torch.nn import functional
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    WeightedRandomSampler,
)

from hookloop import (
    CheckpointStore,
    Hook,
    Resume,
    Save,
    Trainer,
    build,
    hooks,
    load,
    replay,
)  # fmt: skip
from hookloop.cli.main import cli
from hookloop.hooks.ending.answer_requests import act
from hookloop.runs import history
from hookloop.runs.asking import Request
from hookloop.short_runs.route import ReplayError

ITERS, EVERY = 60, 10
AT = (1, 7, 27, 36, 45, 58)


class Samples(Dataset):
    """88 samples, which are changed by random numbers as they are read."""

    def __init__(self, *, augment=False, count=88):
        self.inputs = torch.randn(count, 6, generator=torch.Generator().manual_seed(1))
        self.augment = augment

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        sample = self.inputs[index]
        if self.augment:
            sample = sample + 0.1 * torch.rand(6) + random.random() + np.random.rand()
        return sample.float(), self.inputs[index, :3].argmax()


class Streamed(IterableDataset):
    def __iter__(self):
        data = Samples()
        for index in range(88):
            yield data[index]


class Own(Sampler):
    def __iter__(self):
        return iter(random.sample(range(88), 88))

    def __len__(self):
        return 88


def loader(data=None, **options):
    shuffle = {} if {"sampler", "shuffle"} & options.keys() else {"shuffle": True}
    return DataLoader(data or Samples(), batch_size=8, **(shuffle | options))


def net():
    return nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 3)
    )


def parts(run_dir, **options):
    """The arguments of a Trainer, as a script would build them."""
    torch.manual_seed(0)
    model = net()
    schedule = options.pop("make_schedule", None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    options = {name: make() if callable(make) else make for name, make in options.items()}
    given = {
        "model": model,
        "train_data": loader(),
        "loss": functional.cross_entropy,
        "optimizer": optimizer,
        "max_iters": ITERS,
        "seed": 3,
        "default_hooks": {
            "console": None,
            "checkpoint": hooks.SaveCheckpoint(every=f"{EVERY} iters", keep=None),
            "metrics": hooks.WriteMetrics(every=5),
        },
    }
    if schedule is not None:
        given["schedule"] = schedule(optimizer)
    return given | options


class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = net(), net()


def gan(run_dir):
    torch.manual_seed(0)
    model = Gan()
    given = parts(run_dir) | {"model": model}
    given["optimizer"] = {
        "one": torch.optim.Adam(model.one.parameters()),
        "other": torch.optim.SGD(model.other.parameters(), lr=0.1),
    }

    def first(run, batch):
        return functional.cross_entropy(run.model.one(batch[0]), batch[1])

    def second(run, batch):
        noisy = batch[0] + torch.randn_like(batch[0])
        return functional.cross_entropy(run.model.other(noisy), batch[1])

    del given["loss"]
    return given | {"step": {"one": first, "other": second}}


CELLS = {
    "plain": {},
    "augmentation": {"train_data": lambda: loader(Samples(augment=True))},
    "workers": {"train_data": lambda: loader(Samples(augment=True), num_workers=1)},
    "persistent workers": {
        "train_data": lambda: loader(Samples(augment=True), num_workers=1, persistent_workers=True)
    },
    "samples seeded by workers": {
        "train_data": lambda: loader(Samples(augment=True), num_workers=1),
        "data": {"seed_samples": "workers"},
    },
    "accumulation": {"accumulate": 3},
    "average": {"hooks": lambda: [hooks.AverageWeights()]},
    "validation": {"val_data": lambda: loader(Samples(count=16)), "val_every": "7 iters"},
    "streams": {
        "train_data": lambda: {"a": loader(), "b": loader(Samples(count=40))},
        "data": {"mix": {"a": 3, "b": 1}, "epoch_iters": 11},
    },
    "weighted": {"train_data": lambda: loader(sampler=WeightedRandomSampler(torch.ones(88), 88))},
    "own sampler": {"train_data": lambda: loader(sampler=Own())},
    "own generator": {
        "train_data": lambda: loader(generator=torch.Generator().manual_seed(4)),
    },
    "iterable": {"train_data": lambda: loader(Streamed(), shuffle=False)},
    "clipping": {"clip_norm": 0.5},
    "bf16": {"precision": "bf16"},
    "cosine": {"make_schedule": lambda one: torch.optim.lr_scheduler.CosineAnnealingLR(one, ITERS)},
    "one cycle": {
        "make_schedule": lambda one: torch.optim.lr_scheduler.OneCycleLR(one, 0.1, ITERS)
    },
    "mix-up": {"hooks": lambda: [hooks.MixUp(classes=3)]},
    "norms": {"hooks": lambda: [hooks.RecordNorms(every=2)]},
}


class KeepStates(Hook):
    """Saves the states with which replays are compared, where the run does not look for them."""

    draws_random_numbers = False

    def __init__(self, place, at=AT):
        self.place = str(place)
        self.at = at

    def after_train_iter(self, run):
        if run.progress.iter in self.at:
            run.save(Save(f"at_{run.progress.iter}.pth", self.place, marks_last=False))

    def before_save_checkpoint(self, run, checkpoint):
        checkpoint["hooks"].pop(self.name, None)


def train(tmp_path, make, *, at=AT, more=(), **options):
    """Train as a script would, and keep the states of some iterations."""
    given = make(tmp_path / "run") | options
    own = [*(given.pop("hooks", None) or ()), KeepStates(tmp_path / "states", at), *more]
    Trainer(**given, hooks=own, run_dir=tmp_path / "run").train()


def differences(tmp_path, found):
    kept = CheckpointStore(tmp_path / "states").load(f"at_{found.last}.pth")
    return found.compare(kept)


def check(tmp_path, make, at=AT, **options):
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "run").iterdir()}
    for iteration in at:
        found = replay(tmp_path / "run", at=iteration, make=make, **options)
        assert not differences(tmp_path, found), iteration
        assert found.difference is None, iteration
        begun = max(range(0, iteration, EVERY))
        assert found.origin == (f"iter_{begun}.pth" if begun else "the beginning")
        assert bool(found.checked) is (iteration // 5 > begun // 5)
    assert before == {file: file.stat().st_mtime_ns for file in (tmp_path / "run").iterdir()}


@pytest.mark.parametrize("cell", [*CELLS, "two optimizers"])
def test_every_iteration_is_repeated_to_the_last_bit(tmp_path, cell):
    make = gan if cell == "two optimizers" else lambda place: parts(place, **CELLS[cell])
    train(tmp_path, make)
    # Nobody knows whether the data draws random numbers, so it is said.
    check(tmp_path, make, anyway=cell == "iterable")


# --- what happened from outside: each of these differed in silence without it -------------------

MODULE = """
import torch
from click.testing import CliRunner
from torch import nn

def samples(count=88):
    inputs = torch.randn(count, 6, generator=torch.Generator().manual_seed(1))
    return torch.utils.data.TensorDataset(inputs, inputs[:, :3].argmax(1))

def net():
    return nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 3)
    )
"""

CONFIG = """
seed: 0
max_iters: 60
model: replay_project.net
train_data:
  {type: DataLoader, dataset: {type: replay_project.samples}, batch_size: 8, shuffle: true}
loss: cross_entropy
optimizer: {type: SGD, lr: 0.05, momentum: 0.9}
default_hooks:
  console: null
  checkpoint: {type: SaveCheckpoint, every: 10 iters, keep: null}
  metrics: {type: WriteMetrics, every: 5}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "replay_project.py").write_text(MODULE)
    (tmp_path / "config.yaml").write_text(CONFIG)
    yield tmp_path
    sys.modules.pop("replay_project", None)


def train_config(project, *overrides, resume=None, more=(), at=(), **limits):
    """Train the config, keeping the states of some iterations."""
    trainer = build(load("config.yaml", overrides), project / "run", resume)
    for hook in (KeepStates(project / "states", at), *more):
        trainer._planner.hooks.append(hook)
    trainer.train(**limits)


def check_config(project, at, **options):
    for iteration in at:
        found = replay(project / "run", at=iteration, **options)
        assert not differences(project, found), iteration
        assert found.difference is None, iteration
        assert found.checked, iteration


class Ask(Hook):
    """Asks the run for something after an iteration, as `hookloop ask` does."""

    draws_random_numbers = False

    def __init__(self, at, do, **settings):
        self.at = at
        self.request = Request("1", do, settings, by="a test")

    def after_train_iter(self, run):
        if run.progress.iter == self.at:
            run._internals.asked.append(partial(act, self.request))
            run._internals.requests.any = True


def test_a_rate_that_a_resume_changed(project):
    train_config(project, "max_iters=33", at=(25,))
    resume = Resume(project / "run", "optimizer.lr")
    train_config(project, "optimizer.lr=0.01", resume=resume, at=(35, 36, 45))
    check_config(project, (25, 35, 36, 45))


def test_a_rate_that_was_changed_in_the_live_run(project):
    train_config(project, more=[Ask(33, "set", **{"optimizer.lr": 0.01})], at=(36, 45))
    check_config(project, (36, 45))


def test_a_run_that_was_made_longer(project):
    cycle = "schedule={type: OneCycleLR, max_lr: 0.1, total_steps: auto}"
    train_config(project, "max_iters=30", cycle, at=(25,))
    train_config(project, cycle, resume=Resume(project / "run", "schedule"), at=(36, 45))
    check_config(project, (25, 36, 45))


VAL = "val_data={type: DataLoader, dataset: {type: replay_project.samples}, batch_size: 8}"


@pytest.mark.parametrize("metric", ["val/loss", None])
def test_a_validation_that_was_asked_for(project, metric):
    # With a schedule that waits for a metric, the validation changes the training after it.
    plateau = "schedule={type: ReduceLROnPlateau, metric: val/loss, patience: 0, threshold: 0.9}"
    more = [plateau] if metric else []
    asks = [Ask(13, "validate"), Ask(33, "validate"), Ask(35, "validate")]
    for number, one in enumerate(asks):
        one.named(f"ask_{number}")
    train_config(project, VAL, "val_every=20 iters", *more, more=asks, at=(36, 45))
    check_config(project, (36, 45))


def test_a_hook_that_takes_part_is_missed_in_a_script(tmp_path):
    train(tmp_path, lambda place: parts(place, **CELLS["mix-up"]), at=(27,))
    with pytest.raises(ReplayError, match="the hook 'mix_up', which takes part"):
        replay(tmp_path / "run", at=27, make=parts)
    check(tmp_path, lambda place: parts(place, **CELLS["mix-up"]), (27,))


def test_validation_data_is_missed_in_a_script(tmp_path):
    train(tmp_path, lambda place: parts(place, **CELLS["validation"]), at=(27,))
    with pytest.raises(ReplayError, match="val_data"):
        replay(tmp_path / "run", at=27, make=parts)
    found = replay(tmp_path / "run", at=27, make=parts, anyway=True)
    assert found.difference.iter > 21
    assert "val_data" in " ".join(found.why_not)


def test_after_two_rewinds_the_present_branch_is_repeated(project):
    class GoBack(Hook):
        draws_random_numbers = False

        def __init__(self):
            self.left = [(37, 30), (34, 20)]

        def after_train_iter(self, run):
            if self.left and run.progress.iter == self.left[0][0]:
                at, to = self.left.pop(0)
                run.rewind(to, skip=[at - 1, at], reason="a test")

    train_config(project, more=[GoBack()], at=(7, 24, 33, 45))
    check_config(project, (7, 24, 33, 45))
    # From before both rewinds, where nothing was left out yet.
    for file in ("iter_20.pth", "rewound_iter_20.pth"):
        (project / "run" / file).unlink(missing_ok=True)
    index = json.loads((project / "run/checkpoints.json").read_text())
    index["checkpoints"] = [one for one in index["checkpoints"] if one["iter"] != 20]
    (project / "run/checkpoints.json").write_text(json.dumps(index))
    assert replay(project / "run", at=24).origin == "iter_10.pth"
    check_config(project, (24,))


# --- what is recorded afterwards -----------------------------------------------------------------


def test_what_a_hook_records_of_the_past_is_kept_apart(tmp_path):
    train(tmp_path, parts)
    before = (tmp_path / "run/metrics.jsonl").read_bytes()
    norms = hooks.RecordNorms(every=1)
    found = replay(tmp_path / "run", at="24:27", hooks=[norms], make=parts)
    assert "norms/grad" in found.recorded
    assert found.difference is None
    column = history(tmp_path / "run")["norms/grad"]
    assert (column.iters, column.is_afterwards) == ([24, 25, 26, 27], True)
    assert not history(tmp_path / "run")["train/loss"].is_afterwards
    # The same as if the run had recorded it; a second replay replaces what is there.
    train(tmp_path / "other", parts, more=[hooks.RecordNorms(every=1)])
    whole = history(tmp_path / "other/run")["norms/grad"]
    replay(tmp_path / "run", at=27, hooks=[hooks.RecordNorms(every=1)], make=parts)
    column = history(tmp_path / "run")["norms/grad"]
    assert sorted(column.iters) == [24, 25, 26, 27]
    assert whole.iters  # It was written every five iterations, as a mean.
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == before
    assert "norms/grad" not in history(tmp_path / "run", afterwards=False)


def test_lines_of_iterations_that_were_made_in_another_way_are_left_out(project):
    train_config(project, "max_iters=40")
    replay(project / "run", at="24:36", hooks=["{type: RecordNorms, every: 1}"])
    resume = Resume(project / "run/iter_30.pth", "optimizer.lr")
    train_config(project, "optimizer.lr=0.01", resume=resume)
    column = history(project / "run")["norms/grad"]
    assert max(column.iters) == 30


def test_a_hook_that_takes_part_is_rejected(tmp_path):
    train(tmp_path, parts)
    with pytest.raises(ReplayError, match="takes part in the training"):
        replay(tmp_path / "run", at=27, hooks=[hooks.MixUp(classes=3)], make=parts)


# --- what cannot be exact ------------------------------------------------------------------------


def test_what_cannot_be_exact_is_rejected_before_it_starts(tmp_path):
    make = lambda place: parts(  # noqa: E731 - it is one of several
        place, train_data=loader(Samples(augment=True), num_workers=1), data={"seed_samples": False}
    )
    train(tmp_path, make)
    with pytest.raises(ReplayError, match="not read the same way again"):
        replay(tmp_path / "run", at=27, make=make)
    with pytest.raises(ReplayError, match="has no iteration 61"):
        replay(tmp_path / "run", at=61, make=make)
    with pytest.raises(ReplayError, match="was made by a script"):
        replay(tmp_path / "run", at=27)
    lines = (tmp_path / "run/interventions.jsonl").read_text()
    (tmp_path / "run/interventions.jsonl").write_text(lines.replace('"ranks": 1', '"ranks": 2'))
    assert '"ranks": 2' in (tmp_path / "run/interventions.jsonl").read_text()
    with pytest.raises(ReplayError, match="trained on 2 ranks, and is replayed on one"):
        replay(tmp_path / "run", at=27, make=make)
    (tmp_path / "run/interventions.jsonl").unlink()
    with pytest.raises(ReplayError, match="no interventions.jsonl"):
        replay(tmp_path / "run", at=27, make=make)


def test_without_seed_and_checkpoint_there_is_no_way(tmp_path):
    make = lambda place: parts(place, seed=None)  # noqa: E731 - as above
    train(tmp_path, make)
    check(tmp_path, make, (27,))
    with pytest.raises(ReplayError, match=r"no checkpoint before .*the first one is iter_10.pth"):
        replay(tmp_path / "run", at=7, make=make)


def test_an_edited_line_and_an_edited_checkpoint_are_found(tmp_path):
    train(tmp_path, parts)
    file = tmp_path / "run/metrics.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    edited = next(one for one in lines if one["iter"] == 25 and "train/loss" in one)
    edited["train/loss"] += 1e-7
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert replay(tmp_path / "run", at=27, make=parts).difference.iter == 25
    assert replay(tmp_path / "run", at=36, make=parts).difference is None
    store = CheckpointStore(tmp_path / "run")
    checkpoint, entry = store.load("iter_40.pth"), store.index.entries["iter_40.pth"]
    checkpoint["model"]["0.weight"][0, 0] += 1e-6
    store.write(checkpoint, entry, entry.size)
    found = replay(tmp_path / "run", at=42, make=parts)
    assert found.origin == "iter_40.pth"
    found = replay(tmp_path / "run", at="40:42", make=parts).difference
    assert (found.iter, found.what) == (40, "iter_40.pth")
    assert "model.0.weight" in found.difference


# --- the command ---------------------------------------------------------------------------------


def test_the_command(project):
    train_config(project)
    run = CliRunner().invoke
    done = run(cli, ["replay", "run", "--iter", "36", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["exact"], found["from"], found["iters"]) == (True, "iter_30.pth", [36, 36])
    assert [one["iter"] for one in found["checked"]][-1] == 35
    assert found["seconds"]["predicted"] > 0
    done = run(cli, ["replay", "run", "--iter", "34:36", "--hook", "{type: RecordNorms, every: 1}"])
    assert done.exit_code == 0, done.output
    assert "from iter_30.pth, 6 iterations, about" in done.stdout
    assert "recorded afterwards: norms/grad" in done.stdout
    assert run(cli, ["replay", "run", "--iter", "32", "--check"]).exit_code == 2
    (project / "replay_project.py").write_text(MODULE.replace("0.3", "0.25"))
    sys.modules.pop("replay_project")
    done = run(cli, ["replay", "run", "--iter", "36", "--check"])
    assert done.exit_code == 1, done.output
    assert "differs first at iteration 33" in done.stderr or "iteration 35" in done.stderr
    assert run(cli, ["replay", "run", "--iter", "61"]).exit_code == 2


@pytest.mark.slow
def test_a_run_on_several_processes_with_logical_ranks_is_replayed_on_one(project):
    on_ranks(lambda: train_config(project, "parallel.logical=2") and None, 2)
    found = replay(project / "run", at=36)
    assert found.difference is None
    assert len(found.checked) > 1  # Numbers that the run wrote on the way.
