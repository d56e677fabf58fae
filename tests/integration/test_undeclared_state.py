"""State that nobody declared: a training that is killed ends with the same bits, or a warning."""

import logging
import os
import signal

import pytest
import torch
from tests.integration.undeclared_kinds import KINDS, Samples
from tests.names import iter_file
from tests.ranks import each_rank, on_ranks
from torch.utils.data import DataLoader

from hookloop import Hook, Trainer
from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.hooks import SaveCheckpoint

pytestmark = pytest.mark.slow

ITERS = 10
KILLED_AT = 6


class Kill(Hook):
    """Kills its process where a checkpoint is two iterations old."""

    draws_random_numbers = False

    def __init__(self, at):
        self.at = at

    def after_train_iter(self, run):
        if run.progress.iter == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def make(kind, run_dir, kill_at=None):
    torch.manual_seed(0)
    options = KINDS[kind][0]()
    options.setdefault("train_data", DataLoader(Samples(), batch_size=6, shuffle=True))
    hooks = [*options.pop("hooks", []), Kill(kill_at)]
    return Trainer(
        options.pop("model"),
        **options,
        hooks=hooks,
        max_iters=ITERS,
        seed=5,
        device="cpu",
        run_dir=run_dir,
        resume="auto",
        parallel={"unused_parameters": True},
        default_hooks={"checkpoint": SaveCheckpoint(every="2 iters", keep=None), "console": None},
    )


def train(kind, run_dir, kill_at=None):
    """Train, and return the warnings."""
    said = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("hookloop").addHandler(handler)
    try:
        make(kind, run_dir, kill_at).train()
    finally:
        logging.getLogger("hookloop").removeHandler(handler)
    return said


def train_and_kill(kind, place, size):
    whole = on_ranks(lambda: train(kind, place / "whole"), size)
    ends = each_rank(lambda: train(kind, place / "killed", KILLED_AT), size)
    assert all(end.code == -signal.SIGKILL for end in ends)
    resumed = on_ranks(lambda: train(kind, place / "killed"), size)
    finals = [CheckpointStore(place / name).load(iter_file(ITERS)) for name in ("whole", "killed")]
    return compare(*finals), whole[0], resumed[0]


def check(kind, place, size):
    differences, first, resumed = train_and_kill(kind, place, size)
    named = KINDS[kind][1]
    if named is None:
        assert not differences, [*map(str, differences), *resumed]
        assert not first
    else:
        assert sum(named in message for message in first) == 1, first


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_training_ends_the_same_or_names_what_is_lost(kind, tmp_path):
    check(kind, tmp_path, 1)


ON_RANKS = [
    "counter_of_model", "torch_generator_of_model", "buffer_that_is_not_persistent",
    "parameter_of_loss", "buffer_of_loss", "module_in_closure_of_loss", "object_as_step",
    "teacher_in_closure_of_step", "averaged_model_of_hook", "running_statistic_of_hook",
    "counter_of_data", "cache_of_data", "closure_in_schedule", "iterator_of_step",
    "lazy_module_in_step", "module_with_its_own_optimizer_in_step", "sparse_tensor_of_model",
    "attribute_of_optimizer", "parameter_group_that_is_added", "module_with_two_owners",
    "data_that_a_hook_replaced",
]  # fmt: skip


@pytest.mark.parametrize("kind", ON_RANKS)
def test_the_same_on_three_ranks(kind, tmp_path):
    check(kind, tmp_path, 3)
