"""`TrainerFacade`: the run as Pointrix's hooks see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from hookloop import Save
from hookloop.dialects import Adapter, ConfigView, Facade, LeftToLoop, with_own_values
from hookloop_dialects.pointrix.logger.writer import RunWriter, Writer, parse_writer

if TYPE_CHECKING:
    import torch

    from hookloop import Run

# Pointrix's own defaults, for hooks that read them. There, the GUI is on.
DEFAULTS = {"bar_upd_interval": 10, "save_step": 40000, "enable_gui": False, "training": True}


class Group(MutableMapping[str, Any]):
    """A parameter group; one without a ``name`` is named by its index."""

    def __init__(self, group: dict[str, Any], number: int) -> None:
        self._group = group
        self._number = number

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - torch's own
        if key == "name" and key not in self._group:
            return f"group_{self._number}"
        return self._group[key]

    def __setitem__(self, key: str, value: object) -> None:
        self._group[key] = value

    def __delitem__(self, key: str) -> None:
        del self._group[key]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._group, "name": self["name"]})

    def __len__(self) -> int:
        return len({*self._group, "name"})


class OptimizerView:
    """The optimizer with named groups; everything else is torch's own."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer

    @property
    def param_groups(self) -> list[Group]:
        """The groups; a value that is set takes effect."""
        # Views rather than a name in torch's groups, which would be saved in checkpoints.
        return [Group(group, index) for index, group in enumerate(self._optimizer.param_groups)]

    def __getattr__(self, name: str) -> object:
        return getattr(self._optimizer, name)


class TrainerFacade(Facade):
    """The argument ``trainner`` of a hook; ``global_step`` counts iterations from 1."""

    role = "trainner"  # Pointrix's spelling, which users see in their own hooks.
    hints: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "renderer": "run.model of a native hook, or Trainer(step=...)",
            "controller": "a native hook at after_update",
            "train_step": "Trainer(step=...)",
            "validation": "run.validate() of a native hook",
        }
    )
    train_step = LeftToLoop()
    validation = LeftToLoop()
    start_steps = 1
    gui = None

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.global_step = 0
        self.optimizer_dict: dict[str, object] = {}
        # Pointrix's config files have these values under `trainer`.
        values = with_own_values(run.config)
        section = values.get("trainer", values)
        settings = section if isinstance(section, Mapping) else {}
        self.cfg = ConfigView(
            {
                **DEFAULTS,
                "max_steps": run.progress.total_iters,
                "output_path": str(run.dir),
                **settings,
            }
        )
        self._writer: Writer | None = None

    @property
    def writer(self) -> Writer:
        """The writer of the config's entry ``writer``, or else the writers of the run."""
        # Made at the first use: a run without such hooks leaves no event file.
        if self._writer is None:
            chosen = self.cfg.get("writer")
            if isinstance(chosen, Mapping):
                self._writer = parse_writer(chosen, self.exp_dir)
            else:
                self._writer = RunWriter(self.run)
        return self._writer

    @writer.setter
    def writer(self, writer: Writer) -> None:
        self._writer = writer

    logger = writer  # The name in Pointrix's document; its code has `writer`.

    @property
    def exp_dir(self) -> Path:
        """The run's directory."""
        return Path(self.run.dir)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.run.device

    @property
    def model(self) -> torch.nn.Module:
        """The model."""
        return self.run.model

    @property
    def optimizer(self) -> OptimizerView:
        """The optimizer; the first of several."""
        return OptimizerView(next(iter(self.run.optimizers.values())))

    @property
    def schedulers(self) -> object:
        """The schedules by the name of their optimizer."""
        return self.run.schedules

    @property
    def loss_dict(self) -> dict[str, Any]:
        """The output of the step, with the loss."""
        found = dict(self.run.output) if isinstance(self.run.output, Mapping) else {}
        # Detached, because a hook that keeps it would keep the graph of the iteration too.
        if self.run.loss is not None:
            found["loss"] = self.run.loss.detach()
        return found

    @property
    def metric_dict(self) -> dict[str, Any]:
        """The output of a validation step, with the loss."""
        return self.loss_dict

    @property
    def val_dataset_size(self) -> int:
        """Number of batches in a validation."""
        # Batches, not samples: hooks divide sums over batches by it.
        counts = [source.num_batches or 0 for source in self.run.val_data.values()]
        return sum(counts)

    @property
    def datapipeline(self) -> SimpleNamespace:
        """The data: ``training_dataset`` and ``validation_dataset``."""
        train = self.run.train_data
        val = next(iter(self.run.val_data.values()), None)
        return SimpleNamespace(training_dataset=_dataset(train), validation_dataset=_dataset(val))

    @property
    def hooks(self) -> list[object]:
        """Pointrix's hooks of the run."""
        return [
            hook.foreign
            for hook in self.run.hooks
            if isinstance(hook, Adapter) and hook.facade is self
        ]

    def save_model(self, path: str | Path | None = None) -> None:
        """Request a checkpoint: ``chkpnt<step>.pth`` in the run's directory, or a path."""
        target = Path(path) if path is not None else Path(f"chkpnt{self.global_step}.pth")
        directory = None if target.parent in (Path(), self.exp_dir) else str(target.parent)
        self.run.save(Save(target.name, directory, owner=self.hook))

    def call_hook(self, fn_name: str, **kwargs: object) -> None:
        """Call a method of every hook that has it, for methods that are not mount points."""
        for hook in self.hooks:
            method = getattr(hook, fn_name, None)
            if callable(method):
                try:
                    method(self, **kwargs)
                except TypeError as error:  # As in Pointrix: a wrong signature names its hook.
                    raise TypeError(f"{error} in {hook}") from error


def _dataset(source: Any) -> object:  # noqa: ANN401 - a Stream or None
    return None if source is None else getattr(source.data, "dataset", source.data)
