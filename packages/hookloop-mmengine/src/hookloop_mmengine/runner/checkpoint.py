"""``mmengine.runner.checkpoint``: read MMEngine's files and ours without running code.

MMEngine's files hold a pickled message hub with histories and numpy arrays. They are read with
torch's unpickler for weights. A class that torch does not allow is replaced by a stand-in that only
stores its arguments, so no class that a file names is imported.
"""

from __future__ import annotations

import logging
import zipfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn, cast

import torch
from torch import Tensor, nn

from hookloop import Pretrained
from hookloop.dialects import drafted, trusted_location
from hookloop.errors import CheckpointError
from hookloop.runs import RunDir
from hookloop_mmengine.missing import reject
from hookloop_mmengine.runner.checkpoint_loader import (
    CheckpointLoader,
    _load_checkpoint,
    _load_checkpoint_with_prefix,
    load_from_http,
    load_from_local,
)

__all__ = [
    "CheckpointLoader",
    "_load_checkpoint",
    "_load_checkpoint_to_model",
    "_load_checkpoint_with_prefix",
    "find_latest_checkpoint",
    "get_state_dict",
    "load_checkpoint",
    "load_from_http",
    "load_from_local",
    "load_state_dict",
    "save_checkpoint",
    "weights_to_cpu",
]

_log = logging.getLogger("hookloop")


class Held:
    """The stand-in for an object whose class was not imported."""

    def __init__(self, *args: object) -> None:
        self.args = args
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


def read_checkpoint(
    path: str | Path, map_location: object = "cpu", trusted: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Read a checkpoint of MMEngine or hookloop without running code in it.

    Args:
        path: The file.
        map_location: As in ``torch.load``.
        trusted: Names in the file that stand for what they name; by default none does.
    """
    known = trusted or {}
    try:
        # Files of old versions of torch are not archives, and hold nothing but tensors.
        is_archive = zipfile.is_zipfile(path)
        unknown = torch.serialization.get_unsafe_globals_in_checkpoint(path) if is_archive else []
        # One class per name, because torch maps each allowed class to a single name.
        held = [
            (known.get(name) or type(name.rpartition(".")[2], (Held,), {}), name)
            for name in unknown
        ]
        kinds = [one for one in known.values() if isinstance(one, type)]
        with torch.serialization.safe_globals([*kinds, *held]):  # type: ignore[list-item]
            loaded = torch.load(path, map_location=map_location, weights_only=True)  # type: ignore[arg-type]
    except FileNotFoundError as error:
        raise CheckpointError(f"There is no checkpoint '{path}'.") from error
    except Exception as error:  # torch raises errors of nearly any type for a damaged file.
        raise CheckpointError(f"'{path}' cannot be loaded: {error}") from error
    if not isinstance(loaded, Mapping):
        raise CheckpointError(f"'{path}' holds a {type(loaded).__name__}, not a checkpoint.")
    return dict(loaded)


def weights_in(checkpoint: Mapping[str, object]) -> dict[str, Tensor]:
    """Return the weights of a checkpoint of MMEngine or hookloop, or of a plain state dict."""
    # MMEngine's key first: files of our Runner have both, and it may hold the average.
    for key in ("state_dict", "model"):
        if isinstance(checkpoint.get(key), Mapping):
            return dict(cast("Mapping[str, Tensor]", checkpoint[key]))
    return {key: value for key, value in checkpoint.items() if isinstance(value, Tensor)}


def load_state_dict(
    module: nn.Module, state_dict: Mapping[str, Tensor], strict: bool = False, logger: object = None
) -> None:
    """Load weights into a module; what does not fit is a warning, or an error if ``strict``."""
    own = module.state_dict()
    fitting = {
        name: value
        for name, value in state_dict.items()
        # Torch raises for another shape even when it is not strict, so those are left out.
        if strict or name not in own or own[name].shape == value.shape
    }
    left_out = sorted(state_dict.keys() - fitting.keys())
    report = module.load_state_dict(fitting, strict=strict)
    for kind, names in (
        ("Missing weights", [name for name in report.missing_keys if name not in left_out]),
        ("Unexpected weights", report.unexpected_keys),
        ("Weights of another shape, not loaded", left_out),
    ):
        if names:
            _log.warning("%s: %s", kind, ", ".join(names))


def load_checkpoint(
    model: nn.Module,
    filename: str,
    map_location: object = "cpu",
    strict: bool = False,
    logger: object = None,
    revise_keys: tuple[tuple[str, str], ...] | list[tuple[str, str]] = ((r"^module\.", ""),),
) -> dict[str, object]:
    """Load the weights of a file into a model; return the whole checkpoint."""
    checkpoint = _load_checkpoint(filename, map_location, logger)
    put_weights(model, checkpoint, strict=strict, revise_keys=revise_keys)
    return checkpoint


def _load_checkpoint_to_model(
    model: nn.Module,
    checkpoint: Mapping[str, object],
    strict: bool = False,
    logger: object = None,
    revise_keys: tuple[tuple[str, str], ...] | list[tuple[str, str]] = ((r"^module\.", ""),),
) -> Mapping[str, object]:
    """Load the weights of a checkpoint into a model; return the checkpoint."""
    put_weights(model, checkpoint, strict=strict, revise_keys=revise_keys)
    return checkpoint


def put_weights(
    model: nn.Module,
    checkpoint: Mapping[str, object],
    *,
    strict: bool = False,
    revise_keys: tuple[tuple[str, str], ...] | list[tuple[str, str]] = ((r"^module\.", ""),),
) -> None:
    """Load the weights of a checkpoint into a model, with names changed by ``revise_keys``."""
    renaming = Pretrained("", rename=dict(revise_keys), strip_prefix=())
    weights = {renaming.name_of(name): value for name, value in weights_in(checkpoint).items()}
    load_state_dict(model, weights, strict)


def save_checkpoint(checkpoint: Mapping[str, object], filename: str, **kwargs: object) -> None:
    """Write a checkpoint to a file."""
    Path(filename).parent.mkdir(parents=True, exist_ok=True)
    # A crash must not leave half a file under the final name.
    with drafted(Path(filename)) as draft:
        torch.save(dict(checkpoint), draft)


def weights_to_cpu(state_dict: Mapping[str, Tensor]) -> OrderedDict[str, Tensor]:
    """Return weights on the CPU."""
    return OrderedDict((key, value.cpu()) for key, value in state_dict.items())


def get_state_dict(module: nn.Module, **kwargs: object) -> dict[str, object]:
    """Return the weights of a module."""
    return dict(module.state_dict(**kwargs))  # type: ignore[call-overload]


def find_latest_checkpoint(path: str | Path, stores: Sequence[str] = ()) -> str | None:
    """Return the path that ``last_checkpoint`` in a directory names.

    Args:
        path: The directory.
        stores: Other locations of the user's checkpoints; the path may lead to no other location.
    """
    pointer = RunDir(Path(path)).last_pointer
    if pointer is None:
        return None
    beside = Path(path) / pointer.name
    # MMEngine writes absolute paths; in a moved directory the file is beside `last_checkpoint`.
    if pointer.location is None or (beside.is_file() and not stores):
        return str(beside)
    return f"{trusted_location(pointer, str(path), stores)}/{pointer.name}"


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
