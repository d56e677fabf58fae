"""A training as MMEngine's getting-started page shows it, on random images."""

import argparse

import torch
import torch.nn.functional as F
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(x + self.bn2(self.conv2(out)))


class MMResNet(BaseModel):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.block = Block(8)
        self.head = nn.Linear(8, 4)

    def forward(self, imgs, labels, mode):
        x = self.head(self.block(self.stem(imgs)).mean((2, 3)))
        if mode == "loss":
            return {"loss": F.cross_entropy(x, labels)}
        elif mode == "predict":
            return x, labels


class Accuracy(BaseMetric):
    def process(self, data_batch, data_samples):
        score, gt = data_samples
        self.results.append(
            {
                "batch_size": len(gt),
                "correct": (score.argmax(dim=1) == gt).sum().cpu(),
            }
        )

    def compute_metrics(self, results):
        total_correct = sum(item["correct"] for item in results)
        total_size = sum(item["batch_size"] for item in results)
        return dict(accuracy=100 * total_correct / total_size)


class Squares(Dataset):
    """Images whose class is the quadrant that is bright."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(4, (count,), generator=generator)
        self.images = torch.randn(count, 3, 8, 8, generator=generator)
        for image, label in zip(self.images, self.labels, strict=True):
            row, column = divmod(int(label), 2)
            image[int(label) % 3, row * 4 : row * 4 + 4, column * 4 : column * 4 + 4] += 4

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work-dir", default="./work_dir")
    args = parser.parse_args()
    train_dataloader = DataLoader(batch_size=16, shuffle=True, dataset=Squares(256, 0))
    val_dataloader = DataLoader(batch_size=16, shuffle=False, dataset=Squares(48, 1))

    runner = Runner(
        model=MMResNet(),
        work_dir=args.work_dir,
        train_dataloader=train_dataloader,
        optim_wrapper=dict(optimizer=dict(type=SGD, lr=0.05, momentum=0.9)),
        train_cfg=dict(by_epoch=True, max_epochs=5, val_interval=1),
        val_dataloader=val_dataloader,
        val_cfg=dict(),
        val_evaluator=dict(type=Accuracy),
    )
    runner.train()


if __name__ == "__main__":
    main()
