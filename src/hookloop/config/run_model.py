"""Build the model of a run, and give it the weights of one of the run's checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hookloop.checkpoint.choice import Chosen, choose, describe_weights
from hookloop.checkpoint.state.pretrained import Pretrained
from hookloop.config.build import Builder, plan_build
from hookloop.config.dump import effective
from hookloop.config.load import load
from hookloop.config.parts.part import Part
from hookloop.data.model_inputs import inputs_for
from hookloop.engine.hook import Hook
from hookloop.errors import CheckpointError, ConfigError, HookloopError, Problem

if TYPE_CHECKING:
    import torch

    from hookloop.config.tree import Config

DATA = ("val_data", "test_data", "train_data")
"""Where a batch is taken from: validation data first, because it is not augmented."""


@dataclass
class RunModel:
    """The model of a run with the weights of a checkpoint, on the CPU and in evaluation mode.

    Attributes:
        model: The model.
        chosen: The checkpoint, and which of its weights were taken.
        config: The run's config.
    """

    model: torch.nn.Module
    chosen: Chosen
    config: Config
    _builder: Builder = field(repr=False)

    def metadata(self) -> dict[str, object]:
        """Return what a file that holds the model says about itself."""
        return describe_weights(self.chosen, effective(self.config))

    def example_inputs(self) -> tuple[object, str]:
        """Return the inputs of the model in the first batch of the run's data, and its key.

        A mapping is passed by name, a tuple by position.
        """
        parts = self._builder.blueprint.parts
        name = next((name for name in DATA if name in parts), None)
        if name is None:
            raise ConfigError([Problem("the config has no data to take an example from.")])
        part = parts[name]
        # Several streams: the first of them.
        data = self._builder.make(next(iter(part.values())) if isinstance(part, dict) else part)
        for batch in cast("list[object]", data):
            args, named = inputs_for(self.model, batch, has_loss="loss" in parts)
            return named or args, name
        raise ConfigError([Problem(f"{name} has no batch to take as an example.")])


def load_run_model(run: str | Path, checkpoint: str | None = None) -> RunModel:
    """Build the model that a run's config describes, with the weights of a checkpoint.

    Args:
        run: The run's directory.
        checkpoint: ``"best"``, ``"last"``, or the path or URL of a file; by default the best where
            one is kept, else the last.

    Raises:
        CheckpointError: If there is no such checkpoint, or its weights do not fit the model.
    """
    home = Path(run)
    config = load(home)
    builder = plan_build(config)
    chosen = choose(home, checkpoint, _stores(builder, home))
    model = builder.make_model().cpu()
    give_weights(model, chosen)
    return RunModel(model.eval(), chosen, config, builder)


def give_weights(model: torch.nn.Module, chosen: Chosen) -> None:
    """Give a model the weights of a checkpoint, all of them.

    Raises:
        CheckpointError: If they do not fit.
    """
    if chosen.part not in ("averaged", "model"):  # Those of another program, in one of many forms.
        Pretrained(chosen.path).load_into(model)
        return
    try:
        model.load_state_dict(cast("Mapping[str, torch.Tensor]", chosen.weights))
    except HookloopError:
        raise
    except Exception as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines()[1:4]) or str(error)
        raise CheckpointError(
            f"The weights of '{chosen.path}' do not fit the model: {reason}"
        ) from error


def stores_of(run: str | Path) -> list[str]:
    """List where else a run keeps checkpoints; what its config names is imported."""
    return _stores(plan_build(load(run)), Path(run))


def _stores(builder: Builder, home: Path) -> list[str]:
    changed = builder.blueprint.default_hooks
    parts = [*builder.blueprint.hooks, *(changed.values() if isinstance(changed, dict) else ())]
    found: list[str] = []
    for part in parts:
        made = part.make if isinstance(part, Part) and not part.supplied else None
        # Only hooks that keep checkpoints are made: others may open files or services.
        if isinstance(made, type) and issubclass(made, Hook) and made.stores is not Hook.stores:
            found += cast("Hook", builder.make(part)).stores(home)
    return found
