"""``mmengine.runner.checkpoint``: files of MMEngine and ours, read without running code.

MMEngine's files hold a pickled message hub: histories, numpy arrays, numbers. They are read with
torch's unpickler for weights; for each class that a file names and torch does not know, a stand-in
is given to it that only keeps what it gets. No class that a file names is imported.
"""

from __future__ import annotations

import logging
import pickle
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from hookloop.checkpoint.search import trusted_location
from hookloop.checkpoint.weights import Pretrained
from hookloop.errors import CheckpointError
from hookloop.runs.files import drafted
from hookloop.runs.layout import RunDir

_log = logging.getLogger("hookloop")


class Held:
    """What stands in a loaded checkpoint for an object of a class that was not imported."""

    def __init__(self, *args: object) -> None:
        self.args = args
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


def read_checkpoint(path: str | Path, map_location: object = "cpu") -> dict[str, object]:
    """Read a checkpoint of MMEngine or of hookloop; nothing in it can run."""
    try:
        unknown = torch.serialization.get_unsafe_globals_in_checkpoint(path)
        held = [(type(name.rpartition(".")[2], (Held,), {}), name) for name in unknown]
        with torch.serialization.safe_globals(held):  # type: ignore[arg-type]
            loaded = torch.load(path, map_location=map_location, weights_only=True)  # type: ignore[arg-type]
    except FileNotFoundError as error:
        raise CheckpointError(f"There is no checkpoint '{path}'.") from error
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise CheckpointError(f"'{path}' cannot be loaded: {error}") from error
    if not isinstance(loaded, Mapping):
        raise CheckpointError(f"'{path}' holds a {type(loaded).__name__}, not a checkpoint.")
    return dict(loaded)


def weights_in(checkpoint: Mapping[str, object]) -> dict[str, Tensor]:
    """Find the weights in a checkpoint of any layout."""
    for key in ("state_dict", "model"):
        if isinstance(checkpoint.get(key), Mapping):
            return dict(cast("Mapping[str, Tensor]", checkpoint[key]))
    return {key: value for key, value in checkpoint.items() if isinstance(value, Tensor)}


def load_state_dict(
    module: nn.Module, state_dict: Mapping[str, Tensor], strict: bool = False, logger: object = None
) -> None:
    """Give a module its weights; what does not fit is told, or refused if ``strict``."""
    own = module.state_dict()
    fitting = {
        name: value
        for name, value in state_dict.items()
        if strict or name not in own or own[name].shape == value.shape
    }
    left_out = sorted(state_dict.keys() - fitting.keys())
    report = module.load_state_dict(fitting, strict=strict)
    for kind, names in (
        ("missing", [name for name in report.missing_keys if name not in left_out]),
        ("unexpected", report.unexpected_keys),
        ("of another shape", left_out),
    ):
        if names:
            _log.warning("The weights that were loaded have %s names: %s", kind, ", ".join(names))


def load_checkpoint(
    model: nn.Module,
    filename: str,
    map_location: object = "cpu",
    strict: bool = False,
    logger: object = None,
    revise_keys: tuple[tuple[str, str], ...] | list[tuple[str, str]] = ((r"^module\.", ""),),
) -> dict[str, object]:
    """Load the weights of a file into a model; return all that the file holds."""
    checkpoint = read_checkpoint(filename, map_location)
    put_weights(model, checkpoint, strict=strict, revise_keys=revise_keys)
    return checkpoint


def put_weights(
    model: nn.Module,
    checkpoint: Mapping[str, object],
    *,
    strict: bool = False,
    revise_keys: tuple[tuple[str, str], ...] | list[tuple[str, str]] = ((r"^module\.", ""),),
) -> None:
    """Give a model the weights of a checkpoint, with names revised."""
    names = Pretrained("", rename=dict(revise_keys), strip_prefix=())
    weights = {names.name_of(name): value for name, value in weights_in(checkpoint).items()}
    load_state_dict(model, weights, strict)


def save_checkpoint(checkpoint: Mapping[str, object], filename: str, **kwargs: object) -> None:
    """Write a checkpoint to a file."""
    Path(filename).parent.mkdir(parents=True, exist_ok=True)
    with drafted(Path(filename)) as draft:
        torch.save(dict(checkpoint), draft)


def weights_to_cpu(state_dict: Mapping[str, Tensor]) -> OrderedDict[str, Tensor]:
    """Copy weights to the CPU."""
    return OrderedDict((key, value.cpu()) for key, value in state_dict.items())


def get_state_dict(module: nn.Module, **kwargs: object) -> dict[str, object]:
    """Return the weights of a module."""
    return dict(module.state_dict())


def find_latest_checkpoint(path: str | Path, stores: Sequence[str] = ()) -> str | None:
    """Return the file that ``last_checkpoint`` in a directory names.

    Args:
        path: The directory.
        stores: Other places that the user keeps checkpoints in; the file may lead to no other.
    """
    pointer = RunDir(Path(path)).last_pointer
    if pointer is None:
        return None
    here = Path(path) / pointer.name
    # MMEngine writes absolute paths; after a move the file lies beside `last_checkpoint`.
    if pointer.location is None or (here.is_file() and not stores):
        return str(here)
    return f"{trusted_location(pointer, str(path), stores)}/{pointer.name}"
