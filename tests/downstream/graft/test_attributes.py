"""What modules of a model keep as plain attributes, which MMEngine itself does not save."""

import pytest
import torch
from mmengine.hooks import Hook
from tests.downstream.graft import toy

from hookloop import dialects


class Scaled(toy.Net):
    """Draws a factor every few batches and keeps it, as mmdet's BatchSyncRandomResize its size."""

    def __init__(self):
        torch.manual_seed(2)  # The same weights in each run.
        super().__init__()
        self.batches, self.factor, self.sizes = 0, 1.0, (0, 4)
        self.cache = None  # A tensor later.

    def forward(self, inputs, data_samples=None, mode="tensor"):
        if mode == "loss":
            self.batches += 1
            if self.batches % 4 == 0:
                self.factor, self.sizes = float(torch.rand(())), (self.batches, 4)
            self.cache = torch.full((3,), float(self.batches))
            inputs = [one * self.factor for one in inputs]
        return super().forward(inputs, data_samples, mode)


class Fail(Hook):
    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == 9:
            raise RuntimeError("cut off")


def test_numbers_that_a_module_keeps_are_those_of_the_checkpoint(tmp_path):
    with dialects.graft("mmengine"):
        whole = toy.make_runner(tmp_path / "whole", model=Scaled())
        whole.train()
        with pytest.raises(RuntimeError, match="cut off"):
            toy.make_runner(tmp_path / "cut", Fail(), model=Scaled()).train()
        resumed = toy.make_runner(tmp_path / "cut", model=Scaled(), resume=True)
        resumed.train()
    model, expected = resumed.model, whole.model
    assert (model.batches, model.factor, model.sizes) == (18, expected.factor, (16, 4))
    end, weights = model.state_dict(), expected.state_dict()
    assert all(torch.equal(end[name], weights[name]) for name in weights)


def test_a_setting_that_does_not_change_is_that_of_the_new_run(tmp_path):
    with dialects.graft("mmengine"):
        with pytest.raises(RuntimeError, match="cut off"):
            toy.make_runner(tmp_path, Fail(), model=Scaled()).train()
        model = Scaled()
        model.limit = 5
        toy.make_runner(tmp_path, model=model, resume=True).train()
    assert model.limit == 5
    saved = torch.load(tmp_path / "epoch_1.pth", weights_only=True)
    kept = saved["undeclared"]["values"]
    assert kept.pop("model.cache").tolist() == [6.0] * 3
    assert kept == {"model.batches": 6, "model.factor": kept["model.factor"], "model.sizes": (4, 4)}
