import json
import multiprocessing
import os
from pathlib import Path

import pytest
import torch
from tests.ranks import on_ranks
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Hook, Resume, Trainer, hooks
from hookloop.errors import HookError
from hookloop.runs.fingerprints import (
    FIRST,
    broken_link,
    different_parts,
    present_fingerprints,
    read_fingerprints,
)
from hookloop.runs.layout import RunDir


def data(**options):
    inputs = torch.randn(40, 6, generator=torch.Generator().manual_seed(1))
    options = {"batch_size": 4, "shuffle": True} | options
    return DataLoader(TensorDataset(inputs, inputs[:, :3].argmax(1)), **options)


def train(run_dir, *more, every=2, **options):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 3)
    )
    given = {
        "model": model,
        "train_data": data(),
        "loss": functional.cross_entropy,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        "max_iters": 12,
        "seed": 3,
        "run_dir": run_dir,
        "default_hooks": {
            "console": None,
            "checkpoint": hooks.SaveCheckpoint(every="4 iters", keep=None),
        },
        "hooks": [hooks.RecordFingerprints(every=every, optimizers=True), *more],
    }
    trainer = Trainer(**(given | options))
    trainer.train()
    return trainer


def lines(run_dir):
    return read_fingerprints(RunDir(run_dir))


def test_equal_trainings_have_equal_lines_and_one_root(tmp_path: Path) -> None:
    train(tmp_path / "one")
    train(tmp_path / "two", hooks.RecordNorms(every=1))
    one, two = ((tmp_path / name / "fingerprints.jsonl").read_bytes() for name in ("one", "two"))
    assert one == two
    found = lines(tmp_path / "one")
    assert [line["iter"] for line in found] == [2, 4, 6, 8, 10, 12]
    assert found[0]["previous"] == FIRST and broken_link(found) is None
    summary = json.loads((tmp_path / "one" / "summary.json").read_text())
    assert summary["root"] == found[-1]["chain"]


def flip(tensor):
    with torch.no_grad():
        tensor.view(-1)[:1].view(torch.int32).bitwise_xor_(1 << 20)


class Flip(Hook):
    takes_part_in_training = True

    def before_update(self, run):
        if run.progress.iter == 3:
            flip(run.model[0].weight.grad)


class FlipBuffer(Hook):
    takes_part_in_training = True

    def after_train_iter(self, run):
        if run.progress.iter == 4:
            flip(run.model[1].running_var)


class Draw(Hook):
    takes_part_in_training = True

    def after_train_iter(self, run):
        if run.progress.iter == 4:
            torch.rand(1)


class FlipMomentum(Hook):
    takes_part_in_training = True

    def after_train_iter(self, run):
        if run.progress.iter == 4:
            flip(run.optimizer.state[run.model[0].weight]["momentum_buffer"])


@pytest.mark.parametrize(
    ("planted", "parts"),
    [
        (Flip(), {"weights", "gradients", "optimizers"}),
        (FlipBuffer(), {"buffers"}),
        (Draw(), {"generators"}),
        (FlipMomentum(), {"optimizers"}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_line_says_in_what_trainings_part(tmp_path: Path, planted: Hook, parts: set[str]) -> None:
    train(tmp_path / "one")
    train(tmp_path / "two", planted)
    one, two = lines(tmp_path / "one"), lines(tmp_path / "two")
    assert one[0] == two[0]
    assert set(different_parts(one[1], two[1])) == parts


def test_other_samples_show(tmp_path: Path) -> None:
    train(tmp_path / "one", train_data=data(shuffle=False))
    train(tmp_path / "two", train_data=data(shuffle=False, num_workers=2))
    train(tmp_path / "three", train_data=data(shuffle=False, sampler=[*range(39, -1, -1)]))
    one, two, three = (lines(tmp_path / name) for name in ("one", "two", "three"))
    assert [line["samples"] for line in one] == [line["samples"] for line in two]
    assert not {line["samples"] for line in one} & {line["samples"] for line in three}


@pytest.mark.slow
def test_a_killed_run_has_the_lines_of_one_that_was_not(tmp_path: Path) -> None:
    class Kill(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 7:
                os._exit(9)

    killed = multiprocessing.get_context("fork").Process(
        target=train, args=(tmp_path / "two", Kill())
    )
    killed.start()
    killed.join()
    assert killed.exitcode == 9
    assert [line["iter"] for line in lines(tmp_path / "two")] == [2, 4, 6]
    train(tmp_path / "two", resume=True)
    train(tmp_path / "one")
    one, two = ((tmp_path / name / "fingerprints.jsonl").read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_run_that_goes_back_keeps_the_lines_of_both_branches(tmp_path: Path) -> None:
    class Back(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            if run.progress.iter == 7 and not run._internals.changes:
                run.rewind(4, skip=[6, 7], reason="test")

    train(tmp_path / "one", Back())
    found = lines(tmp_path / "one")
    places = [(line["iter"], line["branch"]) for line in found]
    assert places == [(2, 0), (4, 0), (6, 0), (6, 1), (8, 1), (10, 1), (12, 1)]
    assert broken_link(found) is None
    assert present_fingerprints(RunDir(tmp_path / "one"))[6]["branch"] == 1


def test_a_changed_line_breaks_the_chain(tmp_path: Path) -> None:
    train(tmp_path / "one")
    found = lines(tmp_path / "one")
    changed = [*found[:2], {**found[2], "weights": "0" * 16}, *found[3:]]
    assert broken_link(changed) == changed[2]
    assert broken_link([*found[:2], *found[3:]]) == found[3]
    assert broken_link([found[0], found[2], found[1]]) == found[2]


def test_a_resume_with_fewer_lines_than_the_checkpoint_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train(tmp_path / "one")
    (tmp_path / "one" / "fingerprints.jsonl").unlink()
    train(tmp_path / "one", resume=Resume(tmp_path / "one" / "iter_8.pth"), max_iters=14)
    assert "0 of the 4 lines" in caplog.text


def test_an_interval_in_time_is_rejected() -> None:
    with pytest.raises(HookError, match="iterations"):
        hooks.RecordFingerprints(every="5 minutes")


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2])
def test_a_sharded_run_has_the_lines_of_a_replicated_one(tmp_path: Path, ranks: int) -> None:
    def sharded_and_whole() -> None:
        for name, parallel in (("whole", None), ("sharded", {"shard": ["Linear"]})):
            options = {} if parallel is None else {"parallel": parallel}
            train(tmp_path / name, **options)

    on_ranks(sharded_and_whole, ranks)
    one, two = lines(tmp_path / "whole"), lines(tmp_path / "sharded")
    assert len(one) == 6 and broken_link(two) is None
    assert one == two
