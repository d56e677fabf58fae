"""The memory of DeepCluster."""

import pytest
import torch
from tests.vissl.phases import train

from hookloop_dialects.vissl.hooks import ClusterMemoryHook, InitMemoryHook


class Loss(torch.nn.MSELoss):
    def __init__(self):
        super().__init__()
        self.calls = []

    def init_memory(self, loader, model):
        self.calls.append(("init", len(loader), model is not None))

    def cluster_memory(self):
        self.calls.append("cluster")


@pytest.mark.parametrize(
    ("name", "calls"),
    [("deepclusterv2_loss", [("init", 3, True), "cluster", "cluster"]), ("other", [])],
)
def test_memory_is_filled_once_and_clustered_in_each_phase(tmp_path, name, calls):
    loss = Loss()
    parts = {"loss": loss, "val_data": None, "setup.config": {"LOSS": {"name": name}}}
    train(tmp_path, InitMemoryHook(), ClusterMemoryHook(), max_epochs=2, **parts)
    assert loss.calls == calls
