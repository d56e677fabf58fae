"""The record of interventions: what happened to a run from outside, and what orders come from."""

import errno
import json
import random
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.names import epoch_file
from tests.tiny import make_model
from torch.utils.data import DataLoader, Dataset, RandomSampler, Sampler

from hookloop import Hook, Resume, Trainer
from hookloop.hooks import SaveCheckpoint
from hookloop.runs import RunDir, interventions, read_interventions
from hookloop.runs.interventions import packed, unpacked


class Noting(Dataset):
    """Notes which samples are read."""

    def __init__(self, count=40):
        self.inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(5))
        self.read = []

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        self.read.append(int(index))
        return self.inputs[index], self.inputs[index].sum(0, keepdim=True)


def train(run_dir, *, data=None, rate=0.05, hooks=(), max_epochs=3, **options):
    model = torch.nn.Sequential(make_model(), torch.nn.Dropout(0.2))
    loader = data or DataLoader(Noting(), batch_size=4, shuffle=True)
    Trainer(
        model,
        train_data=loader,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate),
        loss=torch.nn.functional.mse_loss,
        run_dir=run_dir,
        hooks=[SaveCheckpoint(), *hooks],
        default_hooks=False,
        max_epochs=max_epochs,
        **options,
    ).train()
    return loader


def lines(run_dir, *kinds):
    found = read_interventions(RunDir(run_dir))
    return [line for line in found if line["what"] in kinds]


LOADERS = {
    "shuffled": lambda data: DataLoader(data, batch_size=4, shuffle=True),
    "own generator": lambda data: DataLoader(
        data, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3)
    ),
    "with replacement": lambda data: DataLoader(
        data, batch_size=4, sampler=RandomSampler(data, replacement=True)
    ),
}


@pytest.mark.parametrize("loader", LOADERS)
def test_the_order_of_a_pass_can_be_drawn_again_without_training(tmp_path, loader):
    data = Noting()
    train(tmp_path / "run", data=LOADERS[loader](data))
    passes = lines(tmp_path / "run", "pass")
    assert [one["iter"] for one in passes] == [0, 10, 20]
    for number, line in enumerate(passes):
        assert sum(map(len, line["drawn_from"].values())) < 5000
        again = LOADERS[loader](range(40))
        for name, state in line["drawn_from"].items():
            own = again.generator if name == "generator 0" else torch.default_generator
            own.set_state(torch.frombuffer(bytearray(unpacked(state)), dtype=torch.uint8))
        drawn = [index for batch in again for index in batch.tolist()]
        assert drawn == data.read[40 * number : 40 * (number + 1)]


def test_of_a_sampler_of_ones_own_the_generator_that_it_draws_from_is_recorded(tmp_path):
    class Own(Sampler):
        def __iter__(self):
            order = random.sample(range(40), 40)
            return iter(order)

        def __len__(self):
            return 40

    class DrawFromAll(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            torch.rand(1), random.random(), np.random.rand()

    data = Noting()
    loader = DataLoader(data, batch_size=4, sampler=Own())
    train(tmp_path / "run", data=loader, hooks=[DrawFromAll()])
    passes = lines(tmp_path / "run", "pass")
    for number, line in enumerate(passes):
        assert len(json.dumps(line)) < 5000
        if number:  # Before the first pass nobody knows from which it will be.
            assert list(line["drawn_from"]) == ["python"]
            *words, _gauss = struct.unpack("<625Id", unpacked(line["drawn_from"]["python"]))
            random.setstate((3, tuple(words), None))
            assert list(Own()) == data.read[40 * number : 40 * (number + 1)]


def test_an_order_that_is_fixed_needs_no_state_and_short_passes_have_few_lines(tmp_path):
    train(tmp_path / "fixed", data=DataLoader(Noting(), batch_size=4))
    assert [one["drawn_from"] for one in lines(tmp_path / "fixed", "pass")] == [{}, {}, {}]
    short = DataLoader(Noting(4), batch_size=4, shuffle=True)
    train(tmp_path / "short", data=short, max_epochs=50)
    assert [one["iter"] for one in lines(tmp_path / "short", "pass")] == [0, 10, 20, 30, 40, 50]
    last = lines(tmp_path / "short", "pass")[-1]  # Of the passes since the last line.
    assert [one[:2] for one in last["short"]] == [[n + 1, n] for n in range(41, 50)]


def test_a_start_says_how_the_run_was_trained_and_what_is_different_this_time(tmp_path):
    run = tmp_path / "run"
    train(run, max_epochs=2)
    longer = DataLoader(Noting(), batch_size=4, shuffle=True)
    train(run, data=longer, rate=0.01, resume=Resume(run, "optimizer.lr"), clip_norm=2.0)
    first, second = lines(run, "start")
    assert (first["iter"], first["checkpoint"]) == (0, None)
    assert (second["iter"], second["checkpoint"]) == (20, epoch_file(2))
    assert [one["limits"]["max_epochs"] for one in (first, second)] == [2, 3]
    assert first["trained_with"]["optimizer"]["lr"] == 0.05
    assert first["cpu_capability"] and first["threads"] and first["ranks"] == 1
    changes = {one["key"]: (one["old"], one["new"], one["how"]) for one in lines(run, "change")}
    assert changes["optimizer.lr"] == (0.05, 0.01, "resumed")
    assert changes["max_epochs"] == (2, 3, "started")
    assert changes["clip_norm"] == (None, 2.0, "started")
    assert [one["status"] for one in lines(run, "end")] == ["completed", "completed"]


def test_another_batch_size_is_a_change(tmp_path):
    run = tmp_path / "run"
    train(run, max_epochs=1)
    train(run, data=DataLoader(Noting(), batch_size=8, shuffle=True), resume=True)
    (changed,) = [one for one in lines(run, "change") if one["key"].endswith("batch_size")]
    assert (changed["old"], changed["new"]) == (4, 8)


def test_a_rewind_is_recorded_with_what_it_left_out_and_survives_the_next(tmp_path):
    class GoBack(Hook):
        takes_part_in_training = True

        def __init__(self):
            self.left = [(17, 10), (25, 20)]

        def after_train_iter(self, run):
            if self.left and run.progress.iter == self.left[0][0]:
                at, to = self.left.pop(0)
                run.rewind(to, skip=[at], reason=f"loss at {at}")

    train(tmp_path / "run", hooks=[GoBack()])
    first, second = lines(tmp_path / "run", "rewind")
    # The second epoch has an iteration less since its batch was left out.
    assert (first["from"], first["iter"], first["skip"], first["branch"]) == (17, 10, [17], 1)
    assert (second["from"], second["iter"], second["skip"], second["branch"]) == (25, 19, [25], 2)
    assert first["reason"] == "loss at 17"


def test_a_validation_that_changes_the_training_says_what(tmp_path):
    class Ask(Hook):
        takes_part_in_training = True

        def __init__(self):
            self.patience = 2

        def after_train_iter(self, run):
            if run.progress.iter in (3, 5, 7):
                run.validate()

        def after_val_epoch(self, run, metrics):
            if run.progress.iter == 5:
                run.optimizer.param_groups[0]["lr"] /= 2
            if run.progress.iter == 7:
                self.patience -= 1

    val_data = DataLoader(Noting(8), batch_size=4)
    train(tmp_path / "run", hooks=[Ask()], max_epochs=1, val_data=val_data)
    asked = {one["iter"]: one["changed"] for one in lines(tmp_path / "run", "validation")}
    assert asked == {3: [], 5: ["optimizer.groups.0.lr"], 7: ["hooks.ask.patience"]}


# --- the file -------------------------------------------------------------------------------------


def test_a_torn_line_is_left_out_and_the_next_start_begins_a_line_of_its_own(tmp_path):
    run = tmp_path / "run"
    train(run, max_epochs=1)
    file = RunDir(run).interventions_file
    whole = len(lines(run, "start", "pass", "end"))
    file.write_bytes(file.read_bytes() + b'{"what": "pass", "iter": 1')
    assert len(read_interventions(RunDir(run))) == whole
    train(run, max_epochs=2, resume=True)
    assert len(lines(run, "start")) == 2
    file.write_bytes(b'\xff\xfe\n[]\n{"what": 3, "iter": 1}\n{"what": "x", "iter": -1}\n')
    assert read_interventions(RunDir(run)) == []


ROOT = str(Path(__file__).parents[3])

SCRIPT = """
import os, signal, sys
sys.path.insert(0, {root!r})
from tests.unit.trainer.test_recording import train
from hookloop import Hook

class Kill(Hook):
    def after_train_iter(self, run):
        if run.progress.iter == 15:
            os.kill(os.getpid(), signal.SIGKILL)

train({run!r}, hooks=[Kill()])
"""


@pytest.mark.slow
def test_after_a_kill_everything_until_then_is_there(tmp_path):
    script = SCRIPT.format(root=ROOT, run=str(tmp_path / "run"))
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    found = [line["what"] for line in read_interventions(RunDir(tmp_path / "run"))]
    assert found == ["start", "pass", "pass"]  # And no end.
    train(tmp_path / "run", resume="auto")  # Whether a checkpoint was durable in time or not.
    assert len(lines(tmp_path / "run", "start")) == 2


def test_a_full_disk_is_reported_once_and_the_lines_come_later(tmp_path, monkeypatch, caplog):
    run, write = tmp_path / "run", interventions.append_lines

    def fail(path, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    class Free(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 15:
                monkeypatch.setattr(interventions, "append_lines", write)

    monkeypatch.setattr(interventions, "append_lines", fail)
    train(run, hooks=[Free()])
    said = [one for one in caplog.messages if "interventions.jsonl" in one]
    assert len(said) == 1
    assert [line["what"] for line in read_interventions(RunDir(run))] == [
        "start", "pass", "pass", "pass", "end",
    ]  # fmt: skip


def test_a_link_in_place_of_the_file_is_rejected(tmp_path):
    from hookloop.errors import LinkError

    run = tmp_path / "run"
    train(run, max_epochs=1)
    file = RunDir(run).interventions_file
    file.unlink()
    file.symlink_to(tmp_path / "thesis.tex")
    with pytest.raises(LinkError):
        train(run, resume=True)
    assert not (tmp_path / "thesis.tex").exists()


def test_a_state_that_is_damaged_is_an_error_and_cannot_fill_the_memory():
    for text in ("%", "", packed(b"x")[:-8], "aGVsbG8="):
        with pytest.raises(ValueError, match="not the state"):
            unpacked(text)
    with pytest.raises(ValueError, match="not the state"):
        unpacked(packed(bytes(1 << 24)))
