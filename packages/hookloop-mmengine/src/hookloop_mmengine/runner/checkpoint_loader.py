"""``mmengine.runner.CheckpointLoader``: read checkpoints from wherever their path leads.

Files on the disk and URLs of the web are read here. A project registers a function for more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, TypeVar
from urllib.parse import urlparse

import torch
from torch import Tensor

from hookloop_mmengine.dist import barrier, get_local_rank
from hookloop_mmengine.logging import print_log
from hookloop_mmengine.missing import GRAFT

Reader = Callable[..., dict[str, object]]
R = TypeVar("R", bound=Reader)
_FOREIGN = "torchvision://", "modelzoo://", "open-mmlab://", "openmmlab://", "mmcls://", "pavi://"


class CheckpointLoader:
    """The functions that read checkpoints, by the beginning of the path."""

    _schemes: ClassVar[dict[str, Reader]] = {}

    @classmethod
    def register_scheme(
        cls,
        prefixes: str | list[str] | tuple[str, ...],
        loader: R | None = None,
        force: bool = False,
    ) -> R | Callable[[R], R]:
        """Register a function for paths that begin so; without ``loader``, return a decorator."""
        begins = [prefixes] if isinstance(prefixes, str) else list(prefixes)

        def register(loader: R) -> R:
            for prefix in begins:
                if prefix in cls._schemes and not force:
                    raise KeyError(
                        f"{prefix} is already registered as a loader backend, add "
                        '"force=True" if you want to override it'
                    )
                cls._schemes[prefix] = loader
            return loader

        return register if loader is None else register(loader)

    @classmethod
    def load_checkpoint(
        cls, filename: str, map_location: object = None, logger: object = "current"
    ) -> dict[str, object]:
        """Read the checkpoint of a path."""
        # The longest first, because the prefix of files on the disk is empty.
        for prefix in sorted(cls._schemes, key=len, reverse=True):
            if re.match(prefix, str(filename)):
                reader = cls._schemes[prefix]
                kind = reader.__name__.removeprefix("load_from_")
                text = f"Loads checkpoint by {kind} backend from path: {filename}"
                print_log(text, logger=logger)  # type: ignore[arg-type]
                return reader(filename, map_location)
        raise ValueError(f"There is no loader for '{filename}'.")


def load_from_local(filename: str, map_location: object = None) -> dict[str, object]:
    """Read a file of the disk without running code in it."""
    # Late, because that module offers these names, too.
    from hookloop_mmengine.runner.checkpoint import read_checkpoint

    path = Path(filename).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"{filename} can not be found.")
    return read_checkpoint(path, map_location or "cpu")


def load_from_http(filename: str, map_location: object = None) -> dict[str, object]:
    """Read a URL; the file is kept where torch keeps such files and fetched once."""
    path = Path(torch.hub.get_dir(), "checkpoints", Path(urlparse(filename).path).name)
    # One process of a machine fetches it, and the others wait.
    if get_local_rank() == 0 and not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(filename, str(path), progress=False)
    barrier()
    return load_from_local(str(path), map_location)


def _reject(filename: str, map_location: object = None) -> dict[str, object]:
    raise ValueError(
        f"'{filename}' cannot be loaded: the list of models behind this prefix is not offered. "
        f"Give the URL of the file instead, or {GRAFT}."
    )


CheckpointLoader.register_scheme("", load_from_local)
CheckpointLoader.register_scheme(("http://", "https://"), load_from_http)
CheckpointLoader.register_scheme((*_FOREIGN, r"(\S+\:)?s3://", r"(\S+\:)?petrel://"), _reject)


def _load_checkpoint(
    filename: str, map_location: object = None, logger: object = None
) -> dict[str, object]:
    """Read the checkpoint of a path."""
    return CheckpointLoader.load_checkpoint(filename, map_location, logger)


def _load_checkpoint_with_prefix(
    prefix: str, filename: str, map_location: object = None, logger: object = "current"
) -> dict[str, Tensor]:
    """Return those weights of a checkpoint whose names begin so, with the rest of their names."""
    from hookloop_mmengine.runner.checkpoint import weights_in

    begin = prefix if prefix.endswith(".") else f"{prefix}."
    checkpoint: Mapping[str, object] = _load_checkpoint(filename, map_location, logger)
    weights = {
        name.removeprefix(begin): value
        for name, value in weights_in(checkpoint).items()
        if name.startswith(begin)
    }
    if not weights:
        raise AssertionError(f"{begin} is not in the pretrained model")
    return weights
