"""Which parameters a loss depends on."""

import torch
from torch import nn

from hookloop_mmengine.logging import MMLogger
from hookloop_mmengine.model import detect_anomalous_params


def test_parameters_without_a_gradient_are_logged(tmp_path):
    net = nn.ModuleDict(
        {"used": nn.Linear(1, 1), "left": nn.Linear(1, 1), "frozen": nn.Linear(1, 1)}
    )
    net["frozen"].requires_grad_(False)
    hidden = net["used"](torch.ones(1, 1))
    for _ in range(2000):  # Deeper than Python's own stack.
        hidden = hidden + 1
    MMLogger.get_instance("graph", log_file=tmp_path / "a.log")
    detect_anomalous_params(hidden.sum(), net)
    MMLogger._instance_dict.pop("graph").close()
    shown = (tmp_path / "a.log").read_text()
    assert "left.weight with shape torch.Size([1, 1]) is not in the computational graph" in shown
    assert "used" not in shown
    assert "frozen" not in shown
