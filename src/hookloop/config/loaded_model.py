"""`LoadedModel`: a trained model, taken from a run directory and ready for use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.checkpoint.choose import Chosen, choose
from hookloop.checkpoint.state.pretrained import Pretrained
from hookloop.config.build import build_model, plan_build, plan_part
from hookloop.config.dump import effective
from hookloop.config.load import load
from hookloop.config.parts.part import Part
from hookloop.data.batch import size_of, to_device
from hookloop.data.model_inputs import inputs_for
from hookloop.data.outputs import join, to_cpu
from hookloop.engine.hook import Hook
from hookloop.errors import CheckpointError, ConfigError, HookloopError, Problem
from hookloop.parallel.world import World, choose_device
from hookloop.runs.layout import RunDir
from hookloop.trainer.predicting import call_model
from hookloop.update.objective import autocast

if TYPE_CHECKING:
    from torch import nn

    from hookloop.config.tree import Config

DATA = ("val_data", "data.test", "train_data")
"""Where a batch is taken from: validation data first, because it is not augmented."""


class LoadedModel:
    """The model of a run with the weights of one of its checkpoints, in evaluation mode.

    Args:
        model: The model.
        chosen: Where its weights come from.
        config: The config of the run, if it has one.
        device: Where the model is put.

    Attributes:
        checkpoint: The path or URL of the checkpoint.
        iteration: Iterations completed in it.
        metrics: The metrics of that iteration, by their full names.
        is_averaged: Whether the weights are the averaged ones.
        config: What the config says, or an empty mapping.

    Example:
        >>> loaded = LoadedModel(torch.nn.Flatten(), Chosen("best.pth", "best", {}))
        >>> loaded.predict(torch.ones(2, 3, 4)).shape
        torch.Size([2, 12])
    """

    def __init__(
        self,
        model: nn.Module,
        chosen: Chosen,
        config: Config | None = None,
        device: torch.device | None = None,
    ) -> None:
        self.device = device or torch.device("cpu")
        self.model = model.to(self.device).eval()
        self.chosen = chosen.without_tensors()
        self.checkpoint = chosen.path
        self.iteration = chosen.iteration
        self.metrics = chosen.metrics
        self.is_averaged = chosen.part == "averaged"
        self.config: Mapping[str, object] = {} if config is None else config.tree
        self._config = config

    def metadata(self) -> dict[str, object]:
        """Return what a file that holds the model says about itself."""
        return self.chosen.describe({} if self._config is None else effective(self._config))

    def example_inputs(self) -> tuple[object, str]:
        """Return the inputs of the model in the first batch of the run's data, and its key.

        A mapping is passed by name, a tuple by position.
        """
        builder = None if self._config is None else plan_build(self._config)
        parts = {} if builder is None else builder.blueprint.parts
        name = next((name for name in DATA if name in parts), None)
        if builder is None or name is None:
            raise ConfigError([Problem("the config has no data to take an example from.")])
        part = parts[name]
        # Several streams: the first of them.
        data = builder.make(next(iter(part.values())) if isinstance(part, dict) else part)
        for batch in cast("list[object]", data):
            args, named = inputs_for(self.model, batch, has_loss="loss" in parts)
            return named or args, name
        raise ConfigError([Problem(f"{name} has no batch to take as an example.")])

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
    overrides: Sequence[str] = (),
    checkpoint: str | Path | None = None,
    model: nn.Module | None = None,
    device: str = "auto",
) -> LoadedModel:
    """Build the model of a run, and give it the weights of a checkpoint.

    Averaged weights are taken where the run kept them, because it evaluated with them.

    Args:
        path: The directory of a run, or a config.
        overrides: Changes to the config.
        checkpoint: ``"best"``, ``"last"``, or the name or path of a checkpoint; by default the best
            where one is kept, else the last.
        model: The model, if the run has no config.
        device: Where to put it.
    """
    run_dir = Path(path) if Path(path).is_dir() else Path(path).parent
    config: Config | None = None
    try:
        config = load(path, overrides)
    except ConfigError as error:
        problem = error
    chosen = choose(run_dir, checkpoint, _stores(config, run_dir))
    if model is None:
        try:
            if config is None:
                raise problem
            model = build_model(config)
        except ConfigError as error:
            if config is not None and "model" in config.tree:
                raise
            raise CheckpointError(
                f"'{path}' does not say how its model is built ({error}): give it, with "
                f"load(..., checkpoint={str(checkpoint)!r}, model=...)."
            ) from error
    give_weights(model, chosen)
    return LoadedModel(model, chosen, config, choose_device(device, World()))


def give_weights(model: nn.Module, chosen: Chosen) -> None:
    """Give a model the weights of a checkpoint, all of them.

    Raises:
        CheckpointError: If they do not fit.
    """
    if chosen.part not in ("averaged", "model"):  # Those of another program, in one of many forms.
        Pretrained(chosen.path).load_into(model)
        return
    try:
        model.load_state_dict(cast("Mapping[str, Tensor]", chosen.weights))
    except HookloopError:
        raise
    except Exception as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines()[1:4]) or str(error)
        raise CheckpointError(
            f"The weights of '{chosen.path}' do not fit the model: {reason}"
        ) from error


def _stores(config: Config | None, home: Path) -> list[str]:
    """List where else a run keeps checkpoints, as the hooks of its config say."""
    if config is None:
        return []
    try:
        builder = plan_part(config, "model", "hooks", "default_hooks")
    except ConfigError:  # Their code may not be there; then only what is elsewhere is missed.
        pointer = RunDir(home).last_pointer
        if pointer is not None and pointer.location is not None:
            raise
        return []
    changed = builder.blueprint.default_hooks
    parts = [*builder.blueprint.hooks, *(changed.values() if isinstance(changed, dict) else ())]
    found: list[str] = []
    for part in parts:
        made = part.make if isinstance(part, Part) and not part.supplied else None
        # Only hooks that keep checkpoints are made: others may open files or services.
        if isinstance(made, type) and issubclass(made, Hook) and made.stores is not Hook.stores:
            found += cast("Hook", builder.make(part)).stores(home)
    return found
