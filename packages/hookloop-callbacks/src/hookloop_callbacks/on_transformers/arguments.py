"""`ArgumentsView`: the run as ``TrainingArguments``, the argument ``args``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch

from hookloop import Every
from hookloop.dialects import (
    Facade,
    internals_of,
)
from hookloop.hooks import WriteMetrics
from hookloop_callbacks.on_transformers.names import IntervalStrategy, SaveStrategy

if TYPE_CHECKING:
    from hookloop import Run

# What nothing in a run decides; a config may have an entry of the same name.
DEFAULTS: Mapping[str, object] = MappingProxyType(
    {
        "logging_first_step": False,
        "logging_strategy": IntervalStrategy.STEPS,
        "logging_nan_inf_filter": True,
        "save_steps": 500,
        "save_strategy": SaveStrategy.NO,
        "save_total_limit": None,
        "save_only_model": False,
        "eval_delay": 0,
        "eval_on_start": False,
        "load_best_model_at_end": False,
        "metric_for_best_model": None,
        "report_to": (),
        "disable_tqdm": False,
        "push_to_hub": False,
        "hub_model_id": None,
        "deepspeed": None,
        "fsdp": (),
        "fp16": False,
        "bf16": False,
        "optim": "",
        "log_level": "passive",
        "remove_unused_columns": True,
        "label_names": None,
        "past_index": -1,
        "warmup_steps": 0,
        "include_num_input_tokens_seen": "no",
        "ignore_data_skip": False,
        "resume_from_checkpoint": None,
        "auto_find_batch_size": False,
        "skip_memory_metrics": True,
        "torch_compile": False,
        "label_smoothing_factor": 0.0,
    }
)


class ArgumentsView(Facade):
    """The argument ``args``: read from the run, then from its config, then the default.

    Args:
        run: The run.
        owner: Knows which callback is called.
    """

    role = "args"
    hints: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"max_grad_norm": "config={'max_grad_norm': ...}, as Trainer(clip_norm=...) has it"}
    )

    def __init__(self, run: Run, owner: Facade) -> None:
        super().__init__(run)
        self._owner = owner
        groups = [group for one in run.optimizers.values() for group in one.param_groups]
        # Kept, because a schedule changes the group.
        self._group = dict(groups[0]) if groups else {}

    def __getattr__(self, name: str) -> object:
        if not name.startswith("_") and "run" in self.__dict__:
            if name in self.run.config:
                return self.run.config[name]
            if name in DEFAULTS:
                return DEFAULTS[name]
            self.hook = self._owner.hook  # For the message.
        return super().__getattr__(name)

    @property
    def output_dir(self) -> str:
        """The run's directory."""
        return str(self.run.dir)

    logging_dir = output_dir

    @property
    def run_name(self) -> str:
        """The name of the run's directory."""
        return self.run.dir.name

    @property
    def num_train_epochs(self) -> float:
        """Epochs to train."""
        return float(self.run.progress.max_epochs or 3)

    @property
    def max_steps(self) -> int:
        """Updates to make; -1 if the epochs decide."""
        return self.run.progress.max_iters or -1

    @property
    def learning_rate(self) -> float:
        """The learning rate at the start."""
        return float(self._group.get("initial_lr", self._group.get("lr", 0.0)))

    @property
    def weight_decay(self) -> float:
        """The optimizer's."""
        return float(self._group.get("weight_decay", 0.0))

    @property
    def gradient_accumulation_steps(self) -> int:
        """Batches of an update."""
        return self.run.accumulate

    @property
    def per_device_train_batch_size(self) -> int:
        """Samples of a batch on one rank."""
        size = self.train_batch_size
        return -(-size // self.run.world.size)

    @property
    def train_batch_size(self) -> int:
        """Samples of a batch on all ranks."""
        data = self.run.train_data
        size = getattr(None if data is None else data.data, "batch_size", None)
        return size if isinstance(size, int) else self._size_of_batch()

    def _size_of_batch(self) -> int:
        return self.run.batch_size if self.run.batch is not None else 1

    @property
    def per_device_eval_batch_size(self) -> int:
        """Samples of a validation batch."""
        for source in self.run.val_data.values():
            size = getattr(source.data, "batch_size", None)
            if isinstance(size, int):
                return -(-size // self.run.world.size)
        return 8

    eval_batch_size = per_device_eval_batch_size

    @property
    def eval_strategy(self) -> object:
        """``no``, ``epoch`` or ``steps``."""
        every = internals_of(self.run).val_every
        if every is None:
            return IntervalStrategy.NO
        return IntervalStrategy.EPOCH if every.unit == "epochs" else IntervalStrategy.STEPS

    @property
    def eval_steps(self) -> float | None:
        """Every how many updates is validated, if not by epoch."""
        every = internals_of(self.run).val_every
        return int(every.count) if every is not None and every.unit == "iters" else None

    @property
    def logging_steps(self) -> float:
        """Every how many updates is logged: as often as the run writes its own metrics."""
        if "logging_steps" in self.run.config:
            return cast("float", self.run.config["logging_steps"])
        counts = [int(one.count) for one in _intervals(self.run) if one.unit == "iters"]
        return counts[0] if counts else 500

    @property
    def do_train(self) -> bool:
        """Whether it trains."""
        return internals_of(self.run).purpose == "train"

    @property
    def do_eval(self) -> bool:
        """Whether there is something to validate on."""
        return bool(self.run.val_data)

    @property
    def greater_is_better(self) -> bool:
        """Whether the metric of the best model should be high; a loss should not."""
        given = self.run.config.get("greater_is_better")
        name = str(self.run.config.get("metric_for_best_model") or "loss")
        return bool(given) if given is not None else not name.endswith("loss")

    @property
    def seed(self) -> int:
        """The seed of the run; 42, as in Transformers, if there is none."""
        seed = internals_of(self.run).seed
        return 42 if seed is None else seed

    data_seed = seed

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.run.device

    @property
    def n_gpu(self) -> int:
        """GPUs of this process."""
        return int(self.run.device.type == "cuda")

    @property
    def world_size(self) -> int:
        """The number of processes."""
        return self.run.world.size

    @property
    def process_index(self) -> int:
        """The rank of this process."""
        return self.run.world.rank

    @property
    def local_rank(self) -> int:
        """The rank of this process on its machine; -1 for a single one."""
        return -1 if self.run.world.is_alone else self.run.world.local_rank

    local_process_index = process_index

    @property
    def should_save(self) -> bool:
        """Whether this rank writes files."""
        return self.run.world.is_main

    should_log = should_save

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name."""
        properties = [
            name for kind in type(self).__mro__ for name, one in vars(kind).items()
            if isinstance(one, property) and name != "adapters"
        ]  # fmt: skip
        values = {name: getattr(self, name) for name in (*DEFAULTS, *properties)}
        values["device"] = str(values["device"])
        return {**values, **self.run.config}

    def to_sanitized_dict(self) -> dict[str, Any]:
        """Return all values by name, those of other types as text."""
        plain = (bool, int, float, str)
        return {k: v if isinstance(v, plain) else str(v) for k, v in self.to_dict().items()}

    def to_json_string(self) -> str:
        """Return all values as JSON."""
        return json.dumps(self.to_sanitized_dict(), indent=2)


def writes_by_time(run: Run) -> bool:
    """Return whether metrics are written every so many seconds, which no number of updates is."""
    intervals = _intervals(run)
    return bool(intervals) and all(one.unit != "iters" for one in intervals)


def _intervals(run: Run) -> list[Every]:
    found = [hook.every for hook in run.hooks if isinstance(hook, WriteMetrics)]
    return [one for one in found if isinstance(one, Every)]
