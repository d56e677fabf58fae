"""``mmengine.utils.dl_utils.collect_env``: the versions of what a run uses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import torch

import hookloop_mmengine as mmengine
from hookloop_mmengine.utils.dl_utils.parrots_wrapper import get_build_config


def collect_env() -> dict[str, object]:
    """Return the platform, the GPUs, the compiler and the versions by their names."""
    found: dict[str, object] = {
        "sys.platform": sys.platform,
        "Python": sys.version.replace("\n", ""),
        "CUDA available": torch.cuda.is_available(),
        "MUSA available": False,
        "numpy_random_seed": np.random.get_state()[1][0],  # type: ignore[index]
    }
    devices: dict[str, list[str]] = {}
    for index in range(torch.cuda.device_count()):
        devices.setdefault(torch.cuda.get_device_name(index), []).append(str(index))
    found |= {f"GPU {','.join(numbers)}": name for name, numbers in devices.items()}
    found["GCC"] = _compiler()
    found["PyTorch"] = torch.__version__
    found["PyTorch compiling details"] = get_build_config()
    for name, packages in (
        ("TorchVision", ("torchvision",)),
        ("OpenCV", ("opencv-python", "opencv-python-headless")),
    ):
        versions = [one for package in packages if (one := _version(package)) is not None]
        if versions:
            found[name] = versions[0]
    found["MMEngine"] = mmengine.__version__
    return found


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _compiler() -> str:
    path = shutil.which("gcc")
    if path is None:
        return "n/a"
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0].strip() or "n/a"
