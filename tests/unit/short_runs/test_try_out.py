"""`try_config`: the parts that it tries, what it expects of the whole, and what it leaves out."""

from pathlib import Path

import pytest
import torch
from tests.ranks import Ended, each_rank

from hookloop.config.build import arguments as arguments_of
from hookloop.config.load import load
from hookloop.hooks import SaveCheckpoint, StopAfter, WriteCSV, WriteTo, WriteWandb
from hookloop.short_runs.short_run import shortened
from hookloop.short_runs.try_out import Probe as TrialProbe
from hookloop.short_runs.try_out import Trial, _each_once, _expect, try_out
from hookloop.writers import Writer

CONFIG = """\
import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))
train_data = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(40, 4), torch.arange(40) % 3), 4, shuffle=True
)
val_data = {"a": list(train_data), "b": list(train_data)[:3]}
data = {"test": train_data}
loss = torch.nn.functional.cross_entropy
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
max_epochs = 3
"""


def from_file(file, *overrides):
    """What makes the arguments of a Trainer from a config."""
    return lambda run_dir, resume: arguments_of(
        load(file, list(overrides)), run_dir=run_dir, resume=resume
    )


STREAMS = """
train_data = {"web": train_data, "books": list(train_data)[:4]}
data["mix"] = {"web": 3, "books": {0: 1, "1 epoch": 3}}
data["epoch_iters"] = 10
val_every = {"a": "1 epoch", "b": "5 iters"}
"""


def test_a_python_config_is_restored_too(tmp_path: Path):
    file = tmp_path / "trial_config.py"
    file.write_text(CONFIG)
    trial = try_out(from_file(file), tmp_path / "scratch")
    assert (trial.iters, trial.val_batches, trial.test_batches) == (2, 4, 2)
    assert trial.is_restored, trial.differences
    assert (trial.total_iters, trial.validations, trial.total_val_batches) == (30, 3, 13)
    seconds = 30 * trial.seconds_per_iter + 3 * 13 * trial.seconds_per_val_batch
    assert trial.hours == pytest.approx(seconds / 3600)
    assert trial.memory["rss_peak"] > 10
    assert "test/loss" in trial.metrics


def arguments(**options):
    data = [(torch.ones(2, 4), torch.ones(2))] * 10
    return {
        "train_data": data, "val_data": data, "max_epochs": 6, "hooks": [], "default_hooks": None,
    } | options  # fmt: skip


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (60, 6, 10)),
        ({"val_every": "2 epochs"}, (60, 3, 10)),
        ({"val_every": 25}, (60, 2, 10)),
        ({"val_every": "10 min"}, (60, None, 10)),
        ({"data": {"limit": {"train": 5, "val": 4}}}, (30, 6, 4)),
        ({"data": {"overfit": 2}}, (12, 6, 2)),
        ({"val_every": "20 samples"}, (60, None, 10)),
        ({"val_data": None}, (60, 0, 0)),
        ({"val_data": map(abs, [1])}, (60, 6, None)),
        ({"train_data": map(abs, [1]), "max_epochs": 1}, (None, 1, 10)),
        ({"max_epochs": None, "max_iters": 15}, (15, 2, 10)),
    ],
)
def test_the_length_of_the_whole_is_expected(options, expected):
    trial = Trial()
    _expect(trial, arguments(**options))
    assert (trial.total_iters, trial.validations, trial.total_val_batches) == expected


class Nowhere(Writer):
    def write(self, records):
        raise AssertionError("a trial wrote")


def test_streams_have_intervals_and_lengths_of_their_own():
    data = {"a": [(torch.ones(2, 4), torch.ones(2))] * 10, "b": [(torch.ones(2, 4), torch.ones(2))]}
    every = {"a": "2 epochs", "b": "10 iters"}
    trial = Trial()
    _expect(trial, arguments(val_data=data, val_every=every))
    assert (trial.validations, trial.total_val_batches, trial.all_val_batches) == (None, 11, 36)
    _expect(trial, arguments(val_data=data, val_every={**every, "b": "5 min"}))
    assert trial.all_val_batches is None


def test_streams_are_tried(tmp_path: Path):
    file = tmp_path / "streams_config.py"
    file.write_text(CONFIG + STREAMS)
    trial = try_out(from_file(file), tmp_path / "scratch")
    assert (trial.iters, trial.val_batches, trial.all_val_batches) == (2, 4, 3 * 10 + 6 * 3)
    assert trial.is_restored, trial.differences


def test_hooks_that_reach_out_are_left_out(tmp_path: Path):
    save = SaveCheckpoint(directory=tmp_path / "elsewhere")
    hooks = [
        WriteWandb(), WriteTo(Nowhere()), WriteCSV(tmp_path / "a.csv"), WriteCSV().named("near"),
        save, StopAfter(iterations=5),
    ]  # fmt: skip
    model = torch.nn.Linear(4, 1)
    whole = arguments(hooks=hooks, data={"limit": {"val": 1}}, default_hooks=False) | {
        "model": model,
        "loss": torch.nn.functional.mse_loss,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "run_dir": tmp_path / "run",
    }
    trainer, left_out = shortened(_each_once(whole), iters=2, hooks=[TrialProbe()])
    trainer.check()
    names = {hook.name for hook in trainer.run.hooks}
    assert names == {"near", "save_checkpoint", "stop_after", "try"}
    assert save.directory is None
    assert set(left_out) == {"write_wandb", "write_to", "write_csv"}
    assert (trainer.run.progress.max_iters, trainer.run.progress.max_epochs) == (2, 1)


def test_a_training_that_a_hook_ends_at_once_is_tried_as_far_as_it_goes(tmp_path: Path):
    file = tmp_path / "trial_short.py"
    file.write_text(
        CONFIG + "from hookloop.hooks import StopAfter\nhooks = [StopAfter(iterations=1)]\n"
    )
    trial = try_out(from_file(file), tmp_path / "scratch")
    assert trial.iters == 1
    assert trial.is_restored, trial.differences


def test_counts_of_samples_and_tokens_are_restored(tmp_path: Path):
    file = tmp_path / "trial_counts.py"
    more = """\
data["count_tokens"] = lambda batch: batch[0].numel()
val_every = {"a": "100 samples", "b": "1k tokens"}
from hookloop.hooks import SaveCheckpoint, StopAfter
hooks = [SaveCheckpoint(every="50 tokens").named("by_tokens"), StopAfter(samples=100)]
"""
    file.write_text(CONFIG + more)
    trial = try_out(from_file(file), tmp_path / "scratch")
    assert trial.is_restored, trial.differences
    assert trial.validations is None


# --- on many ranks


def try_on_ranks(tmp_path: Path, size: int, more: str = "", *overrides: str) -> list[Ended]:
    (tmp_path / "trial_model.py").write_text(MODEL)
    file = tmp_path / "trial_ranks.py"
    built = CONFIG.replace(", 4, shuffle", ", 8, shuffle")  # Batch norm needs two samples a rank.
    lines = [MADE if line.startswith("model = ") else line for line in built.splitlines()]
    file.write_text("\n".join([*lines, more]))
    return each_rank(lambda: try_out(from_file(file, *overrides), tmp_path / "scratch"), size)


MADE = "import trial_model\nmodel = trial_model.make()"
MODEL = """\
import torch
from hookloop import Hook


def make():
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3)
    )


class Forgets(Hook):
    count = 0

    def after_train_iter(self, run):
        self.count += 1

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state): ...


class Fails(Hook):
    on_error = "disable"

    def after_train_iter(self, run):
        if run.world.rank == 1:
            raise RuntimeError("this hook is broken")


class Widen(Hook):
    takes_part_in_training = True

    def __init__(self, phase):
        self.phase = phase

    def before_forward(self, run):
        if run.world.rank == 1 and run.phase == self.phase:
            run.batch = (torch.ones(2, 5), run.batch[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("size", "strategy"), [(2, "sharded"), (3, "replicated")])
def test_every_part_is_tried_on_all_ranks(tmp_path: Path, size: int, strategy: str):
    ends = try_on_ranks(tmp_path, size, f"parallel = '{strategy}'\n")
    assert not any(end.error for end in ends), [end.error for end in ends]
    first = ends[0].value
    assert (first.ranks, first.iters, first.val_batches, first.test_batches) == (size, 2, 4, 2)
    assert first.is_restored, first.differences
    assert first.total_iters == 15  # Of the global batches.
    assert first.checkpoint_bytes > 1000
    for end in ends:
        assert end.value.metrics["val/b/loss"] == first.metrics["val/b/loss"]
        assert end.value.metrics["test/loss"] == first.metrics["test/loss"]
        assert end.value.memory == first.memory


@pytest.mark.slow
def test_all_ranks_know_what_one_of_them_finds(tmp_path: Path):
    more = "hooks = [trial_model.Forgets(), trial_model.Fails()]\n"
    for end in try_on_ranks(tmp_path, 2, more):
        assert not end.value.is_restored, end.error
        assert "hooks.forgets.count" in end.value.differences[0]
        assert "this hook is broken" in end.value.failed_hooks["fails"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("phase", "place"),
    [
        ("train", "in training, iteration 1: the batch is"),
        ("val", "while evaluating val_data['a'], batch 1"),
    ],
)
def test_a_shape_that_is_wrong_on_one_rank_is_found_with_its_place(
    tmp_path: Path, phase: str, place: str
):
    first, second = try_on_ranks(tmp_path, 2, f"hooks = [trial_model.Widen('{phase}')]\n")
    assert "mat1 and mat2 shapes cannot be multiplied (2x5 and 4x8)" in second.error
    assert place in second.error
    assert "in model.0 (Linear(in_features=4, out_features=8, bias=True))" in second.error
    assert "rank 1 failed in iteration" in first.error and place in first.error
    assert (first.code, second.code) == (1, 1)


@pytest.mark.slow
def test_a_sharded_model_that_is_not_built_again_is_rejected(tmp_path: Path):
    more = """\
model = trial_model.model = getattr(trial_model, "model", model)
optimizer = torch.optim.Adam(model.parameters())
schedule = None
parallel = "sharded"
"""
    ends = try_on_ranks(tmp_path, 2, more)
    assert all("name a function or a class that builds it" in end.error for end in ends)
