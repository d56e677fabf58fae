"""A training through MMEngine's Runner."""

import pytest
import torch
from tests.mmengine.parts import Count, Net, make_loader

from hookloop_mmengine.evaluator import Evaluator
from hookloop_mmengine.registry import DefaultScope
from hookloop_mmengine.runner import Runner


@pytest.fixture(autouse=True)
def scope():
    yield
    DefaultScope._instance_dict.clear()


@pytest.fixture
def make(tmp_path):
    """Makes a runner of four samples in two batches; it validates after each epoch."""

    def make(*hooks, by_epoch=True, limit=3, **options):
        torch.manual_seed(0)
        limits = {"max_epochs" if by_epoch else "max_iters": limit, "val_interval": 1}
        parts = {
            "model": Net(),
            "work_dir": str(tmp_path),
            "train_dataloader": make_loader(),
            "val_dataloader": make_loader(),
            "val_cfg": {},
            "val_evaluator": Evaluator(Count()),
            "test_dataloader": make_loader(),
            "test_cfg": {},
            "test_evaluator": Evaluator(Count()),
            "train_cfg": {"by_epoch": by_epoch, **limits},
            "optim_wrapper": {"optimizer": {"type": "SGD", "lr": 0.1}},
            "log_level": "ERROR",
        }
        return Runner(**(parts | options), custom_hooks=list(hooks))

    return make


@pytest.fixture
def run(make):
    """Makes a runner and trains."""

    def run(*hooks, **options):
        runner = make(*hooks, **options)
        runner.train()
        return runner

    return run
