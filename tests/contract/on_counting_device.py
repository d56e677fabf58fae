"""No built-in hook makes the host read from the device in an iteration in which nothing is due.

Run by test_host_reads.py, in a process of its own.
"""

import pytest
import torch
from tests.contract.test_hooks import SLOW, make_hook

import hookloop.hooks
from hookloop import Hook, Trainer
from hookloop.hooks import AverageWeights, SaveCheckpoint
from hookloop.testing import (
    CountingDevice,
    HostReadError,
    assert_no_host_reads,
    assert_resumes_exactly,
    host_reads,
    tiny_trainer,
)

# Hooks that cannot do their work without a read in each iteration.
READ_ALWAYS = {
    "DetectAnomaly",  # torch's own check reads.
    "RollBack",  # It compares every loss with those before, so that no jump is built upon.
    "SkipBadUpdates",  # It decides before the optimizer steps.
}
# The interval is what decides when something is due.
RARE = {"StopOnNaN": lambda: hookloop.hooks.StopOnNaN(every=100)}


@pytest.mark.parametrize(
    "name",
    # The slow ones send from a thread what others have read.
    [name for name in hookloop.hooks.__all__ if name not in SLOW],
)
def test_a_hook_reads_only_when_something_is_due(name):
    make = RARE.get(name, lambda: make_hook(name))
    if name not in READ_ALWAYS:
        assert_no_host_reads(make)
        return
    with pytest.raises(AssertionError, match="nothing is due"):
        assert_no_host_reads(make)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"accumulate": 3},
        {"clip_norm": 0.1},
        {"precision": "bf16"},
        {"hooks": [AverageWeights()]},
        {"default_hooks": None, "run_dir": None},
    ],
    ids=["plain", "accumulate", "clip", "bf16", "ema", "defaults"],
)
def test_a_training_reads_nothing_between_intervals(options, tmp_path):
    options = dict(options)
    hooks = options.pop("hooks", [])
    options.pop("run_dir", None)
    reads = host_reads(*hooks, **options)
    between = [str(one) for of_iter in reads[3:-1] for one in of_iter]
    assert not between, between


def test_a_hook_that_reads_is_named_with_its_line():
    class ReadLoss(Hook):
        def after_train_iter(self, run):
            run.loss.detach().item()

    with pytest.raises(AssertionError, match=r"ReadLoss.*on_counting_device\.py:\d+"):
        assert_no_host_reads(ReadLoss)


def test_a_read_can_be_an_error():
    with CountingDevice() as device:
        number = torch.ones(3).to(device.name).sum()
        with device.forbidding(), pytest.raises(HostReadError, match=r"on_counting_device\.py"):
            number.item()
        assert number.item() == 3.0


def test_a_training_on_the_device_ends_with_the_bits_of_the_cpu():
    weights = {}
    for name in ("cpu", "counting"):
        with CountingDevice():
            trainer = tiny_trainer(AverageWeights(), device=name, accumulate=2, clip_norm=0.5)
            trainer.train()
            weights[name] = {k: v.cpu() for k, v in trainer.run.model.state_dict().items()}
            assert trainer.test()["accuracy"] >= 0
    for key, value in weights["cpu"].items():
        assert torch.equal(value, weights["counting"][key])


@pytest.mark.parametrize(
    "options",
    [{}, {"max_epochs": 4, "accumulate": 2, "precision": "bf16"}, {"precision": "fp16"}],
    ids=["plain", "bf16", "fp16"],
)
def test_a_cut_run_resumes_exactly_on_the_device(options):
    def make(*hooks, **more):
        return tiny_trainer(AverageWeights(), *hooks, device="counting", **(options | more))

    with CountingDevice():
        assert_resumes_exactly(make)


def test_a_save_copies_each_tensor_once(tmp_path):
    with CountingDevice() as device:
        tiny_trainer(SaveCheckpoint(every="1 epoch"), device=device.name, run_dir=tmp_path).train()
    copies = [read for read in device.reads if read.what == "copy to the CPU"]
    # Four parameters and their momentum, in each of two epochs; those of the Trainer's generators
    # are not on the device.
    assert len(copies) == 2 * 8, copies


def test_predictions_come_from_the_device(tmp_path):
    with CountingDevice() as device:
        trainer: Trainer = tiny_trainer(device=device.name)
        trainer.train()
        on_device = trainer.predict([torch.ones(4, 4)])
    again = tiny_trainer(device="cpu")
    again.train()
    ours, theirs = (next(iter(one)) for one in (on_device, again.predict([torch.ones(4, 4)])))
    assert torch.equal(torch.as_tensor(ours).cpu(), torch.as_tensor(theirs))
