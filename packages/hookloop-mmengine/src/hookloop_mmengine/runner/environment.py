"""``env_cfg``: what MMEngine sets for the whole process before it builds anything."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import cast

import torch

from hookloop.errors import ArgumentError, nearest

try:
    import resource
except ImportError:  # On Windows there is no such limit.
    resource = None  # type: ignore[assignment]

_KEYS = {
    "env_cfg": ("cudnn_benchmark", "mp_cfg", "dist_cfg", "resource_limit"),
    "env_cfg.mp_cfg": ("mp_start_method", "opencv_num_threads"),
    # The engine chooses the backend by the device, and how the processes find each other.
    "env_cfg.dist_cfg": ("backend", "timeout"),
}
_BACKENDS = ("nccl", "gloo")


def timeout_of(env_cfg: Mapping[str, object] | None) -> float | None:
    """Return for how many seconds one process may keep the others waiting, if that is set."""
    connection = cast("Mapping[str, object]", (env_cfg or {}).get("dist_cfg") or {})
    return cast("float | None", connection.get("timeout"))


def set_up(env_cfg: Mapping[str, object] | None) -> None:
    """Set what ``env_cfg`` asks for; reject what it may not hold."""
    env = dict(env_cfg or {})
    processes = cast("Mapping[str, object]", env.get("mp_cfg") or {})
    connection = cast("Mapping[str, object]", env.get("dist_cfg") or {})
    for where, given in (
        ("env_cfg", env), ("env_cfg.mp_cfg", processes), ("env_cfg.dist_cfg", connection),
    ):  # fmt: skip
        for key in given:
            if key not in _KEYS[where]:
                raise ArgumentError(f"{where}: '{key}' is not offered.{nearest(key, _KEYS[where])}")
    if connection.get("backend", "gloo") not in _BACKENDS:
        raise ArgumentError(
            f"env_cfg.dist_cfg: backend={connection['backend']!r} is not offered. Leave it out: "
            "nccl is used on GPUs, gloo elsewhere."
        )
    if env.get("cudnn_benchmark"):
        torch.backends.cudnn.benchmark = True
    if "mp_start_method" in processes and sys.platform != "win32":
        multiprocessing.set_start_method(str(processes["mp_start_method"]), force=True)
    if "opencv_num_threads" in processes and find_spec("cv2") is not None:
        import cv2  # type: ignore[import-not-found, unused-ignore]

        cv2.setNumThreads(processes["opencv_num_threads"])
    if "resource_limit" in env and resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = max(cast("int", env["resource_limit"]), soft)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
