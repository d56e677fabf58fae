"""Several processes without GPUs, which MMEngine itself cannot start: it sets a CUDA device."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from mmengine.dist import utils
from mmengine.model import MMDistributedDataParallel

from hookloop.dialects import Graft

_MPI = {"LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK", "RANK": "OMPI_COMM_WORLD_RANK",
        "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE"}  # fmt: skip


def allow_processes(graft: Graft) -> None:
    """Let launchers and the model's wrapper work on CPUs; nothing changes where there are GPUs."""
    if torch.accelerator.is_available():
        return
    graft.replace(utils, "_init_dist_pytorch", _init_pytorch)
    graft.replace(utils, "_init_dist_mpi", _init_mpi)
    wrapped = MMDistributedDataParallel.__init__
    graft.replace(MMDistributedDataParallel, "__init__", _without_devices(wrapped))


def _init_pytorch(backend: str, init_backend: str = "torch", **options: Any) -> None:  # noqa: ANN401
    torch.distributed.init_process_group("gloo", **options)


def _init_mpi(backend: str, **options: Any) -> None:  # noqa: ANN401 - of torch.distributed
    for name, source in _MPI.items():
        os.environ.setdefault(name, os.environ[source])
    os.environ.setdefault("MASTER_PORT", "29500")
    _init_pytorch(backend, **options)


def _without_devices(wrapped: Callable[..., None]) -> Callable[..., None]:
    def init(self: object, module: torch.nn.Module, *args: object, **kwargs: object) -> None:
        if all(parameter.device.type == "cpu" for parameter in module.parameters()):
            kwargs.pop("device_ids", None)  # torch rejects them for a model on the CPU.
        wrapped(self, module, *args, **kwargs)

    return init
