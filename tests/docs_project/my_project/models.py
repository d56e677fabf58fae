"""Models with the parts that the pages name: a backbone, a head, a generator, a discriminator."""

from torch import nn


class Net(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, width), nn.BatchNorm1d(width), nn.ReLU())
        self.head = nn.Linear(width, 2)
        self.generator = nn.Linear(8, 8)
        self.discriminator = nn.Linear(8, 1)

    def forward(self, inputs):
        return self.head(self.backbone(inputs))
