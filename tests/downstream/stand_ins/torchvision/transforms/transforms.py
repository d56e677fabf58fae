"""The modes of interpolation that mmpretrain names."""

from enum import Enum


class InterpolationMode(Enum):
    """How pixels are interpolated."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
