"""`LoadedModel`: a trained model, taken from a run directory and ready for use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.checkpoint.choice import choose
from hookloop.config.build import build_model
from hookloop.config.load import load
from hookloop.config.run_model import give_weights, stores_of
from hookloop.data.batch import size_of, to_device
from hookloop.data.outputs import join, to_cpu
from hookloop.errors import CheckpointError, ConfigError
from hookloop.parallel.world import World, choose_device
from hookloop.runs.layout import RunDir
from hookloop.trainer.predicting import call_model
from hookloop.update.objective import autocast

if TYPE_CHECKING:
    from torch import nn


class LoadedModel:
    """The model of a run with the weights of one of its checkpoints, in evaluation mode.

    Args:
        model: The model.
        checkpoint: Where its weights come from.
        config: The config of the run, or an empty mapping.
        iteration: Iterations completed in the checkpoint.
        metrics: The metrics of that iteration, by their full names.
        device: Where the model is.
        is_averaged: Whether the weights are the averaged ones.

    Example:
        >>> loaded = LoadedModel(torch.nn.Flatten(), "best.pth", {}, 9, {}, torch.device("cpu"))
        >>> loaded.predict(torch.ones(2, 3, 4)).shape
        torch.Size([2, 12])
    """

    def __init__(
        self,
        model: nn.Module,
        checkpoint: str,
        config: Mapping[str, object],
        iteration: int,
        metrics: Mapping[str, float],
        device: torch.device,
        *,
        is_averaged: bool = False,
    ) -> None:
        self.model = model.to(device).eval()
        self.checkpoint = checkpoint
        self.config = config
        self.iteration = iteration
        self.metrics = metrics
        self.device = device
        self.is_averaged = is_averaged

    def predict(self, inputs: object) -> Any:  # noqa: ANN401 - what the model returns
        """Return the output for inputs, on the CPU.

        Args:
            inputs: One batch as a tensor, an array, a tuple or a mapping; or batches, as a list, a
                DataLoader or any other iterable, whose outputs are joined along the samples.
        """
        is_batch = isinstance(inputs, Tensor | np.ndarray | Mapping | tuple)
        batches = [inputs] if is_batch else cast("Iterable[object]", inputs)
        outputs, sizes = [], []
        for batch in batches:
            outputs.append(self._output(batch))
            sizes.append(size_of(batch))
        return outputs[0] if is_batch or not outputs else join(outputs, sizes)

    def _output(self, batch: object) -> object:
        if isinstance(batch, np.ndarray):
            batch = torch.from_numpy(batch)
        precision = cast("Literal['fp32', 'bf16', 'fp16']", self.config.get("precision") or "fp32")
        context = autocast(precision, self.device) or nullcontext()
        with torch.no_grad(), context:
            moved = to_device(batch, self.device)
            has_loss = self.config.get("loss") is not None
            return to_cpu(call_model(self.model, moved, has_loss=has_loss))


def load_model(
    path: str | Path,
    overrides: Sequence[str],
    checkpoint: str | Path,
    model: nn.Module | None = None,
    device: str = "auto",
) -> LoadedModel:
    """Build the model of a run, and give it the weights of a checkpoint.

    Averaged weights are taken where the run kept them, because it evaluated with them.

    Args:
        path: The directory of a run, or a config.
        overrides: Changes to the config.
        checkpoint: ``"best"``, ``"last"``, or the name or path of a checkpoint.
        model: The model, if the run has no config.
        device: Where to put it.
    """
    run_dir = Path(path) if Path(path).is_dir() else Path(path).parent
    chosen = choose(run_dir, str(checkpoint), _stores(run_dir))
    tree: Mapping[str, object] = {}
    try:
        config = load(path, overrides)
        tree = config.tree
        if model is None:
            model = build_model(config)
    except ConfigError as error:
        if model is None and "model" not in tree:
            raise CheckpointError(
                f"'{path}' does not say how its model is built ({error}): give it, with "
                f"load(..., checkpoint={str(checkpoint)!r}, model=...)."
            ) from error
        if model is None:
            raise
    give_weights(model, chosen)
    return LoadedModel(
        model,
        chosen.path,
        tree,
        chosen.iteration,
        chosen.metrics,
        choose_device(device, World()),
        is_averaged=chosen.part == "averaged",
    )


def _stores(run_dir: Path) -> list[str]:
    """List the other stores of a run that keeps its checkpoints elsewhere, as its config says."""
    home = RunDir(run_dir)
    pointer = home.last_pointer
    if pointer is None or pointer.location is None or not home.config_file.is_file():
        return []
    return stores_of(run_dir)  # Only then: it imports all that the config names.
