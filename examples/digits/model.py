"""A small convolutional network for 8x8 grey images, and its accuracy."""

from __future__ import annotations

from torch import Tensor, nn


class DigitsNet(nn.Sequential):
    """Three convolutions and a linear layer; 8x8 pixels in, ten scores out.

    Args:
        width: Channels of the first convolution; the later ones have twice as many.
        dropout: Share of the features that the last layer does not see in training.
    """

    def __init__(self, width: int = 32, dropout: float = 0.2) -> None:
        super().__init__(
            *_block(1, width),
            *_block(width, 2 * width),
            nn.MaxPool2d(2),
            *_block(2 * width, 2 * width),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(2 * width * 2 * 2, 10),
        )


def _block(channels_in: int, channels_out: int) -> tuple[nn.Module, ...]:
    # No bias: the batch norm has one, and would remove this one.
    convolution = nn.Conv2d(channels_in, channels_out, kernel_size=3, padding=1, bias=False)
    return convolution, nn.BatchNorm2d(channels_out), nn.ReLU()


def accuracy(output: Tensor, targets: Tensor) -> Tensor:
    """Return the share of images whose highest score is the right class."""
    return (output.argmax(dim=1) == targets).float().mean()
