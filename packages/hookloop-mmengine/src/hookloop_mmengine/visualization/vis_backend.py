"""``mmengine.visualization.vis_backend``: the backends, under the name that files import."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.missing import reject
from hookloop_mmengine.visualization.backends import (
    BaseVisBackend,
    LocalVisBackend,
    TensorboardVisBackend,
    force_init_env,
)

__all__ = ["BaseVisBackend", "LocalVisBackend", "TensorboardVisBackend", "force_init_env"]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
