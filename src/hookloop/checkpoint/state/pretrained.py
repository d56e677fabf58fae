"""Pre-trained weights: those of a file, renamed and selected to fit the new model."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from hookloop.checkpoint.shards.dtensors import spread
from hookloop.checkpoint.shards.reading import Shards
from hookloop.checkpoint.store.storage import is_checkpoint_directory, is_url
from hookloop.checkpoint.store.store import load
from hookloop.errors import CheckpointError

_log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Report:
    """What happened to each name when weights were loaded."""

    loaded: list[str]
    missing: list[str]
    unexpected: list[str]
    mismatched: list[str]

    def __str__(self) -> str:
        lines = [f"{len(self.loaded)} tensors loaded"]
        for kind in ("missing", "unexpected", "mismatched"):
            names = getattr(self, kind)
            if names:
                shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if names[8:] else "")
                lines.append(f"{len(names)} {kind}: {shown}")
        return "; ".join(lines)


@dataclass(frozen=True)
class Pretrained:
    r"""Weights to start from.

    Args:
        path: A checkpoint (ours, a plain state dict, one with ``state_dict`` or ``model``), a
            directory of shards, or a safetensors file.
        rename: Regular expressions and their replacements, applied to the names in the file.
        strip_prefix: Prefixes to remove, for example ``module.``.
        partial: Whether names may be missing, unexpected or of another shape; they are reported.
        averaged: Whether to take the averaged weights of the checkpoint.

    Example:
        >>> Pretrained("resnet.pth", rename={r"^fc\.": "head."}).name_of("fc.weight")
        'head.weight'
    """

    path: str | Path
    rename: Mapping[str, str] = field(default_factory=dict)
    strip_prefix: tuple[str, ...] | list[str] = ("module.", "_orig_mod.")
    partial: bool = False
    averaged: bool = False

    def name_of(self, name: str) -> str:
        """Return the name in the model of a weight in the file."""
        for prefix in self.strip_prefix:
            name = name.removeprefix(prefix)
        for pattern, new in self.rename.items():
            name = re.sub(pattern, new, name)
        return name

    def load_into(self, model: torch.nn.Module) -> Report:
        """Copy the weights into a model; without ``partial`` every name must fit."""
        weights = {self.name_of(name): value for name, value in self._read().items()}
        own = cast("dict[str, Tensor]", model.state_dict())
        wrong = [
            f"{name} {_shape(value)} instead of {_shape(own[name])}"
            for name, value in weights.items()
            if name in own and _shape(value) != _shape(own[name])
        ]
        fitting = {n: v for n, v in weights.items() if n in own and _shape(v) == _shape(own[n])}
        report = Report(
            loaded=list(fitting),
            missing=[name for name in own if name not in weights],
            unexpected=[name for name in weights if name not in own],
            mismatched=wrong,
        )
        # Not a single fitting name is an error even with partial=True: the model would silently
        # train from its random weights.
        if not fitting or not (self.partial or len(fitting) == len(own) == len(weights)):
            raise CheckpointError(
                f"load_from '{self.path}' does not fit the model: {report}. Rename with rename=, "
                "or allow it with Pretrained(..., partial=True)."
            )
        model.load_state_dict({n: spread(v, own[n]) for n, v in fitting.items()}, strict=False)
        if self.partial:
            _log.warning("load_from '%s': %s", self.path, report)
        return report

    def _read(self) -> dict[str, Tensor]:
        if str(self.path).endswith(".safetensors"):
            from safetensors.torch import load_file

            try:
                return load_file(self.path)
            except Exception as error:
                raise CheckpointError(f"'{self.path}' cannot be loaded: {error}") from error
        keys = ("averaged",) if self.averaged else ("model", "state_dict")
        if not is_url(self.path) and is_checkpoint_directory(Path(self.path)):
            checkpoint = Shards.open(self.path).read_all(part=keys[0])
        else:
            checkpoint = load(self.path)
        for key in keys:
            if isinstance(checkpoint.get(key), Mapping):
                return self._named(cast("Mapping[object, Tensor]", checkpoint[key]))
        if not self.averaged and all(isinstance(value, Tensor) for value in checkpoint.values()):
            return self._named(cast("Mapping[object, Tensor]", checkpoint))
        raise CheckpointError(
            f"'{self.path}' has no weights under {' or '.join(keys)}: it has "
            f"{', '.join(map(str, checkpoint)) or 'nothing'}."
        )

    def _named(self, weights: Mapping[object, Tensor]) -> dict[str, Tensor]:
        if wrong := [name for name in weights if not isinstance(name, str)]:
            raise CheckpointError(
                f"'{self.path}' has weights whose name is not text: {wrong[0]!r}."
            )
        return cast("dict[str, Tensor]", dict(weights))


def _shape(value: object) -> object:
    """Return the shape of a tensor, or the type of an entry that is not a tensor."""
    # A module can put anything into its state_dict through get_extra_state().
    return tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
