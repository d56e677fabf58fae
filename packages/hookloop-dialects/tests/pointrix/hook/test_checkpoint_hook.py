"""Checkpoints under Pointrix's names."""

import torch
from tests.pointrix.cloud import train, train_cloud

from hookloop_dialects.pointrix.hook import CheckPointHook


def test_checkpoints_have_pointrixs_names(tmp_path):
    config = {"trainer": {"save_step": 2}}
    train_cloud(tmp_path, CheckPointHook(), max_iters=4, setup={"config": config})
    names = sorted(path.name for path in (tmp_path / "run").glob("chkpnt*"))
    assert names == ["chkpnt00005.pth", "chkpnt2.pth", "chkpnt4.pth"]


def test_a_point_cloud_is_written_beside_the_checkpoint(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        torch.nn.ParameterList, "save_ply", lambda self, path: written.append(path), raising=False
    )
    train_cloud(tmp_path, CheckPointHook(), max_iters=3, setup={"config": {"save_step": 2}})
    assert written == [str(tmp_path / "run" / "00002.ply")]


def test_a_model_without_a_point_cloud_is_saved_too(tmp_path):
    train(tmp_path, CheckPointHook(), max_iters=2, setup={"config": {"save_step": 2}})
    names = sorted(path.name for path in (tmp_path / "run").glob("chkpnt*"))
    assert names == ["chkpnt00003.pth", "chkpnt2.pth"]
