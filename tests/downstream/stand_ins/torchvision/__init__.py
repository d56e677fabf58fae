"""The few names of torchvision that mmpretrain imports; there is no build for every torch."""

from torchvision import ops, transforms

__version__ = "0.0"
__all__ = ["ops", "transforms"]
