"""A training on the graft: the calls, numbers and files of the real runner; exact after a kill."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mmengine.hooks import Hook
from tests.downstream.graft import toy

from hookloop import dialects

pytestmark = pytest.mark.filterwarnings("ignore")  # MMEngine warns often.


def both(tmp_path, **options):
    """Train with MMEngine and on the graft; return what hooks saw, the weights and the files."""
    results = []
    for name in ("real", "grafted"):
        hook, directory = toy.Record(), tmp_path / name
        if name == "real":
            runner = toy.make_runner(directory, hook, {"type": "EMAHook"}, **options)
            runner.train()
        else:
            with dialects.graft("mmengine"):
                runner = toy.make_runner(directory, hook, {"type": "EMAHook"}, **options)
                runner.train()
        results.append((hook.seen, toy.weights_of(runner), toy.files_in(directory)))
    return results


def without_saves(seen):
    """Leave out the saves, which the engine makes after the sweep and not inside it."""
    return [call for call in seen if call[0] != "before_save_checkpoint"]


def saves(seen):
    return {call[:3] for call in seen if call[0] == "before_save_checkpoint"}


CASES = {
    "epochs": {},
    "iterations": {"by_epoch": False, "length": 16},
    "endless sampler": {"by_epoch": False, "length": 16, "train": {"sampler": "InfiniteSampler"}},
    "best and few files": {
        "checkpoint": {"save_best": "auto", "rule": "greater", "max_keep_ckpts": 2}
    },
    "accumulation": {
        "optim_wrapper": {"optimizer": {"type": "Adam", "lr": 0.01}, "accumulative_counts": 4}
    },
    "dynamic intervals": {
        "length": 4,
        "train_cfg": {
            "by_epoch": True, "max_epochs": 4, "val_interval": 3, "dynamic_intervals": [(3, 1)],
        },
    },
    "no validation": {"val_dataloader": None, "val_evaluator": None, "val_cfg": None},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_calls_losses_weights_and_files_are_those_of_the_real_runner(case, tmp_path):
    options = dict(CASES[case])
    if "train_cfg" in options:
        options["train_cfg"] = dict(options["train_cfg"])
    real, grafted = both(tmp_path, **options)
    assert without_saves(real[0]) == without_saves(grafted[0])
    # One copy of the state serves all files of an iteration, and hooks see MMEngine's counters.
    assert saves(grafted[0]) == saves(real[0])
    assert all(torch.equal(real[1][name], grafted[1][name]) for name in real[1])
    assert real[2] == grafted[2]


def run_toy(directory, kill_at, by_epoch, workers, sampler, **environment):
    arguments = [str(directory), kill_at, by_epoch, workers, sampler]
    done = subprocess.run(
        [sys.executable, toy.__file__, *arguments],
        env={**os.environ, "TRACE": "1", "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 9, 128 + signal.SIGTERM), done.stderr
    lines = done.stdout.splitlines()
    return [line for line in lines if line.startswith(("loss", "weight"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kill_at", "by_epoch", "workers", "sampler"),
    [("8", "1", "0", "DefaultSampler"), ("12", "", "2", "InfiniteSampler")],
)
def test_a_killed_training_continues_to_the_same_bits(
    kill_at, by_epoch, workers, sampler, tmp_path
):
    whole = run_toy(tmp_path / "whole", "", by_epoch, workers, sampler)
    cut = run_toy(tmp_path / "cut", kill_at, by_epoch, workers, sampler)
    resumed = run_toy(tmp_path / "cut", "", by_epoch, workers, sampler)
    assert cut == whole[: len(cut)]
    assert 0 < len(resumed) < len(whole)
    assert resumed == whole[-len(resumed) :]
    assert toy.files_in(tmp_path / "cut") == toy.files_in(tmp_path / "whole")


@pytest.mark.slow
def test_a_signal_saves_in_the_middle_of_an_epoch_and_the_run_continues_there(tmp_path):
    setting = ("1", "0", "DefaultSampler")
    whole = run_toy(tmp_path / "whole", "", *setting)
    cut = run_toy(tmp_path / "cut", "8", *setting, SIGNAL="1")
    assert len(cut) == 9
    assert (tmp_path / "cut" / "last_checkpoint").read_text().endswith("/iter_9.pth")
    resumed = run_toy(tmp_path / "cut", "", *setting)
    assert cut + resumed == whole


class StopAfter(Hook):
    def __init__(self, at):
        self.at = at

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        if runner.iter == self.at:
            runner.train_loop.stop_training = True


@pytest.mark.parametrize("options", [{}, {"by_epoch": False, "length": 16}])
def test_a_hook_ends_the_training_as_in_the_real_runner(options, tmp_path):
    ends = []
    for graft in (None, "mmengine"):
        hook = toy.Record()
        with dialects.graft(*([graft] if graft else [])):
            directory = tmp_path / str(graft)
            toy.make_runner(directory, StopAfter(7), hook, **options).train()
        ends.append(hook.seen[-4:])
    assert without_saves(ends[0]) == without_saves(ends[1])


class Switch(Hook):
    """Replace the loader of a loop by iterations, as hooks that switch a pipeline do."""

    def __init__(self, at):
        self.at = at

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == self.at:
            from mmengine.runner import loops

            smaller = runner.build_dataloader(toy.loader(shuffle=False, batch_size=2), seed=3)
            iterator = loops._InfiniteDataloaderIterator(smaller)
            runner.train_loop.dataloader_iterator = iterator


class Sizes(Hook):
    def __init__(self):
        self.seen = []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.seen.append(len(data_batch["inputs"]))


def test_a_replaced_iterator_is_read_from_the_next_iteration_on(tmp_path):
    sizes = []
    for graft in (None, "mmengine"):
        hook = Sizes()
        with dialects.graft(*([graft] if graft else [])):
            directory = tmp_path / str(graft)
            toy.make_runner(directory, Switch(3), hook, by_epoch=False, length=9).train()
        sizes.append(hook.seen)
    assert sizes[0] == sizes[1]
    assert sizes[0][3] == 4 and sizes[0][4] == 2


class Register(Hook):
    def before_train_epoch(self, runner):
        if runner.epoch == 1:
            runner.register_hook(self.late)


def test_a_hook_that_is_registered_in_a_run_is_called(tmp_path):
    registering, late = Register(), toy.Record()
    registering.late = late
    with dialects.graft("mmengine"):
        toy.make_runner(tmp_path, registering).train()
    assert late.seen[0][:3] == ("before_train_iter", 1, 6)


def test_a_failing_hook_is_named_and_its_traceback_is_whole(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            raise ValueError("of the project")

    with dialects.graft("mmengine"), pytest.raises(ValueError, match="of the project") as caught:
        toy.make_runner(tmp_path, Fail()).train()
    assert "raised by the hook 'fail'" in "\n".join(caught.value.__notes__)


def test_a_wrong_signature_is_rejected_before_the_first_iteration(tmp_path):
    class Wrong(Hook):
        def after_train_iter(self, runner):
            raise AssertionError("never called")

    with dialects.graft("mmengine"), pytest.raises(Exception, match="after_train_iter"):
        toy.make_runner(tmp_path, Wrong()).train()


def test_a_finished_training_trains_no_more(tmp_path):
    with dialects.graft("mmengine"):
        runner = toy.make_runner(tmp_path)
        runner.train()
        before = toy.weights_of(runner)
        runner.train()
    after = toy.weights_of(runner)
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", ["", "4"])
def test_two_ranks_train_as_the_real_runner_does(kill_at, tmp_path):
    script = Path(__file__).parent / "ranks.py"

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
             str(script), *arguments],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        lines = sorted(line for line in done.stdout.splitlines() if line.startswith("rank"))
        return lines, done.stderr

    real, problem = run("real", str(tmp_path / "real"), "")
    assert len(real) == 2, problem
    ours, problem = run("grafted", str(tmp_path / "ours"), kill_at)
    if kill_at:
        assert not ours
        ours, problem = run("grafted", str(tmp_path / "ours"), "")
    assert ours == real, problem


def test_the_end_of_the_data_is_reported_as_by_mmengine(tmp_path):
    lines = []
    for name in ((), ("mmengine",)):
        with dialects.graft(*name):
            runner = toy.make_runner(
                tmp_path / str(len(name)), by_epoch=False, length=8, log_level="WARNING"
            )
            handler = Kept()
            runner.logger.addHandler(handler)
            runner.train()
        lines.append(handler.lines)
    assert any("InfiniteSampler" in line for line in lines[0])
    assert any("InfiniteSampler" in line for line in lines[1])


class Kept(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class Gan(toy.Net):
    """A model with two optimizers, which makes its updates itself."""

    def train_step(self, data, optim_wrapper):
        data = self.data_preprocessor(data)
        loss = self._run_forward(data, mode="loss")["loss"]
        for name in ("first", "last"):
            optim_wrapper[name].zero_grad()
        loss.backward()
        for name in ("first", "last"):
            optim_wrapper[name].step()
        return {"loss": loss}


def test_several_optimizers_and_schedulers(tmp_path):
    from mmengine.optim import OptimWrapper, OptimWrapperDict

    results = []
    for name in ((), ("mmengine",)):
        torch.manual_seed(1)
        model = Gan()
        first = torch.optim.SGD(model.layers[0].parameters(), lr=0.1)
        last = torch.optim.Adam(model.layers[4].parameters(), lr=0.1)
        wrapper = OptimWrapperDict(first=OptimWrapper(first), last=OptimWrapper(last))
        schedulers = {
            "first": {"type": "MultiStepLR", "milestones": [1]},
            "last": [{"type": "ExponentialLR", "gamma": 0.5}],
        }
        with dialects.graft(*name):
            runner = toy.make_runner(
                tmp_path / str(len(name)),
                model=model,
                optim_wrapper=wrapper,
                param_scheduler=schedulers,
            )
            runner.train()
        results.append((toy.weights_of(runner), runner.optim_wrapper.get_lr()))
    assert all(torch.equal(results[0][0][key], results[1][0][key]) for key in results[0][0])
    assert results[0][1] == results[1][1]
