"""Launchers and the wrapper of the model on CPUs; test_training.py starts two processes."""

import torch
from mmengine.dist import utils
from mmengine.model import MMDistributedDataParallel

from hookloop.dialects.grafts import Graft
from hookloop_mmengine.graft.without_gpus import allow_processes


def test_it_changes_nothing_where_there_are_gpus(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    before = utils._init_dist_pytorch, MMDistributedDataParallel.__init__
    with Graft() as graft:
        allow_processes(graft)
        assert (utils._init_dist_pytorch, MMDistributedDataParallel.__init__) == before


def test_it_is_taken_back():
    before = utils._init_dist_pytorch
    with Graft() as graft:
        allow_processes(graft)
        assert utils._init_dist_pytorch is not before
    assert utils._init_dist_pytorch is before
