"""The rank of this process among those that train together, and the device that it uses."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch

from hookloop.errors import HookloopError


@dataclass(frozen=True)
class World:
    """The rank of a process and the number of processes of a run.

    >>> World().is_main
    True
    """

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    @classmethod
    def from_environment(cls) -> World:
        """Read what a launcher such as torchrun has set."""
        world = cls(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))
        # Otherwise each process would train the whole run, all into the same directory.
        if world.size > 1:
            raise HookloopError(
                f"WORLD_SIZE is {world.size}, but this version trains in one process: "
                "start it without the launcher."
            )
        return world


def choose_device(wanted: str | torch.device) -> torch.device:
    """Return a device; ``"auto"`` is the best one available.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if wanted != "auto":
        try:
            device = torch.device(wanted)
        except RuntimeError as error:
            hint = "Write 'auto', 'cpu', 'cuda' or 'mps', with a number to choose one: 'cuda:1'."
            raise HookloopError(
                f"device={wanted!r} is not a device of torch. {hint}", argument="device"
            ) from error
        # torch itself fails only when the first tensor is moved, with a message about drivers.
        if device.type == "cuda" and not torch.cuda.is_available():
            raise HookloopError(
                f"device={str(wanted)!r}: torch finds no CUDA device here. Write 'auto' or 'cpu', "
                "or install a build of torch for CUDA and its driver.",
                argument="device",
            )
        return device
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
