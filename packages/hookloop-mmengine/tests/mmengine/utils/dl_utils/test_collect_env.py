"""The versions of what a run uses."""

import sys

import torch

from hookloop_mmengine.utils.dl_utils import collect_env


def test_the_versions_are_there():
    found = collect_env()
    assert found["sys.platform"] == sys.platform
    assert found["PyTorch"] == torch.__version__
    assert found["MMEngine"] == "0.10.7"
    assert found["CUDA available"] is torch.cuda.is_available()
    assert "GCC" in found


def test_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert collect_env()["GCC"] == "n/a"
