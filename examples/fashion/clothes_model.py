"""A small convolutional network for pictures of 28x28 pixels, and its accuracy."""

from __future__ import annotations

from torch import Tensor, nn


class ClothesNet(nn.Sequential):
    """Four convolutions and a linear layer; ten scores out.

    Args:
        width: Channels of the first convolution; each pair of convolutions has twice as many.
        dropout: Share of the features that the last layer does not see in training.
    """

    def __init__(self, width: int = 16, dropout: float = 0.3) -> None:
        super().__init__(
            *_block(1, width),
            nn.MaxPool2d(2),
            *_block(width, 2 * width),
            nn.MaxPool2d(2),
            *_block(2 * width, 4 * width),
            *_block(4 * width, 4 * width),
            nn.MaxPool2d(7),
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(4 * width, 10),
        )


def _block(channels_in: int, channels_out: int) -> tuple[nn.Module, ...]:
    # No bias: the batch norm has one, and would remove this one.
    convolution = nn.Conv2d(channels_in, channels_out, kernel_size=3, padding=1, bias=False)
    return convolution, nn.BatchNorm2d(channels_out), nn.ReLU()


def accuracy(output: Tensor, targets: Tensor) -> Tensor:
    """Return the share of pictures whose highest score is the right class."""
    return (output.argmax(dim=1) == targets).float().mean()
