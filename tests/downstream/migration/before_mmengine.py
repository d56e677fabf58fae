# before_mmengine.py
import torch
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.nn.functional import mse_loss

torch.manual_seed(0)
inputs = torch.randn(64, 4)
data = [(x, x.sum(0, keepdim=True)) for x in inputs]


class Regression(BaseModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, inputs, targets, mode):
        output = self.layer(inputs)
        return {"loss": mse_loss(output, targets)} if mode == "loss" else (output, targets)


class MeanSquare(BaseMetric):
    def process(self, data_batch, data_samples):
        output, targets = data_samples
        self.results.append((output - targets).square().mean().item())

    def compute_metrics(self, results):
        return {"loss": sum(results) / len(results)}


def loader(batch_size):
    return {
        "dataset": data,
        "batch_size": batch_size,
        "sampler": {"type": "DefaultSampler", "shuffle": False},
        "collate_fn": {"type": "default_collate"},
    }


runner = Runner(
    model=Regression(),
    work_dir="out",
    train_dataloader=loader(16),
    train_cfg={"by_epoch": True, "max_epochs": 5},
    val_dataloader=loader(32),
    val_cfg={},
    val_evaluator=[MeanSquare()],
    optim_wrapper={
        "optimizer": {"type": "SGD", "lr": 0.1},
        "clip_grad": {"max_norm": 1.0},
    },
    default_hooks={"checkpoint": {"type": "CheckpointHook", "save_best": "loss"}},
    custom_hooks=[{"type": "EarlyStoppingHook", "monitor": "loss", "patience": 3}],
)
runner.train()
print(f"val loss {runner.message_hub.get_scalar('val/loss').current():.4f}")
