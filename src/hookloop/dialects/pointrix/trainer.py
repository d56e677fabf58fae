"""`TrainerFacade`: the run as Pointrix's hooks see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from hookloop.checkpoint.request import Save
from hookloop.dialects.adapter import Adapter, Facade
from hookloop.dialects.config_view import ConfigView
from hookloop.dialects.pointrix.logger.writer import RunWriter, Writer, parse_writer

if TYPE_CHECKING:
    import torch

    from hookloop.core.run import Run

DEFAULTS = {"bar_upd_interval": 10, "save_step": 40000, "enable_gui": False, "training": True}


class Group(MutableMapping[str, Any]):
    """A parameter group; one without a ``name`` is called by its number."""

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
    """The optimizer, whose groups have names; everything else is torch's own."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer

    @property
    def param_groups(self) -> list[Group]:
        """The groups; a value that is set takes effect."""
        return [Group(one, index) for index, one in enumerate(self._optimizer.param_groups)]

    def __getattr__(self, name: str) -> object:
        return getattr(self._optimizer, name)


class TrainerFacade(Facade):
    """What a hook receives as ``trainner``; ``global_step`` counts iterations from 1."""

    role = "trainner"
    hints: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "renderer": "run.model of a native hook, or Trainer(step=...)",
            "controller": "a native hook at after_update",
            "train_step": "Trainer(step=...)",
            "validation": "run.validate() of a native hook",
        }
    )
    start_steps = 1
    gui = None

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.global_step = 0
        self.optimizer_dict: dict[str, object] = {}
        own = run.config.get("trainer", run.config)
        given = own if isinstance(own, Mapping) else {}
        self.cfg = ConfigView(
            {
                **DEFAULTS,
                "max_steps": run.progress.total_iters,
                "output_path": str(run.dir),
                **given,
            }
        )
        self._writer: Writer | None = None

    @property
    def writer(self) -> Writer:
        """Where hooks write: what the config's ``writer`` says, or the writers of the run."""
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

    logger = writer  # As hooks of the document call it.

    @property
    def exp_dir(self) -> Path:
        """The run's directory."""
        return Path(self.run.dir)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
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
        """The schedules by name of their optimizer."""
        return self.run.schedules

    @property
    def loss_dict(self) -> dict[str, Any]:
        """What the step returned, with the loss."""
        found = dict(self.run.output) if isinstance(self.run.output, Mapping) else {}
        if self.run.loss is not None:
            found["loss"] = self.run.loss.detach()
        return found

    @property
    def metric_dict(self) -> dict[str, Any]:
        """What the step returned of a batch of the validation, with the loss."""
        return self.loss_dict

    @property
    def val_dataset_size(self) -> int:
        """Batches of a validation."""
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
        """Ask for a checkpoint: ``chkpnt<step>.pth`` in the run's directory, or a path."""
        target = Path(path) if path is not None else Path(f"chkpnt{self.global_step}.pth")
        place = None if target.parent in (Path(), self.exp_dir) else str(target.parent)
        self.run.save(Save(target.name, place, owner=self.hook))

    def call_hook(self, fn_name: str, **kwargs: object) -> None:
        """Call a method of every hook that has it; for methods that are no mount points."""
        for hook in self.hooks:
            method = getattr(hook, fn_name, None)
            if callable(method):
                try:
                    method(self, **kwargs)
                except TypeError as error:
                    raise TypeError(f"{error} in {hook}") from error


def _dataset(source: Any) -> object:  # noqa: ANN401 - a Source or None
    return None if source is None else getattr(source.data, "dataset", source.data)
