"""``mmengine.logging.MessageHub``: values that hooks share with each other and with the log."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Self, cast

import numpy as np
from torch import Tensor

from hookloop.dialects import to_portable
from hookloop.errors import nearest
from hookloop_mmengine.logging.history_buffer import HistoryBuffer
from hookloop_mmengine.utils.manager import ManagerMixin


class MessageHub(ManagerMixin):
    """Named scalars with their histories, and named pieces of information.

    Entries that are marked ``resumed`` are saved in checkpoints.

    Args:
        name: The name by which `get_instance` finds this hub.
        log_scalars: The histories to begin with.
        runtime_info: The information to begin with.
        resumed_keys: Which of their names are saved in checkpoints.

    Attributes:
        recorder: What is told about each number, for the writers of a native run.

    >>> hub = MessageHub("example")
    >>> hub.update_scalar("train/loss", 0.5)
    >>> hub.get_scalar("train/loss").current(), hub.get_info("epoch", 0)
    (0.5, 0)
    """

    def __init__(
        self,
        name: str,
        log_scalars: Mapping[str, HistoryBuffer] | None = None,
        runtime_info: Mapping[str, object] | None = None,
        resumed_keys: Mapping[str, bool] | None = None,
    ) -> None:
        super().__init__(name)
        self._log_scalars = dict(log_scalars or {})
        self._runtime_info = dict(runtime_info or {})
        self._resumed_keys = dict(resumed_keys or {})
        self.recorder: Callable[[str, float | Tensor], None] | None = None

    @classmethod
    def get_instance(cls, name: str, **kwargs: object) -> Self:
        """Return the hub of a name; a new hub is empty, whatever the other arguments are."""
        return super().get_instance(name)

    @classmethod
    def get_current_instance(cls) -> Self:
        """Return the newest hub; the first one is made if there is none."""
        if not cls._instance_dict:
            cls.get_instance("mmengine")
        return super().get_current_instance()

    @classmethod
    def new_instance(cls, name: str) -> Self:
        """Make an empty hub and let it be the current one.

        A hub of the same name belongs to an older run, so it is replaced.
        """
        cls._instance_dict.pop(name, None)
        return cls.get_instance(name)

    @property
    def log_scalars(self) -> dict[str, HistoryBuffer]:
        """The histories by name."""
        return self._log_scalars

    @property
    def runtime_info(self) -> dict[str, object]:
        """The information by name."""
        return self._runtime_info

    def update_scalar(
        self, key: str, value: float | Tensor, count: int = 1, resumed: bool = True
    ) -> None:
        """Add a number to a history; a tensor stays on its device until it is read."""
        self._mark(key, resumed)
        if not isinstance(count, int):
            raise TypeError(f"The type of count must be int, but got {type(count)}: {count}")
        buffer = self._log_scalars.get(key)
        if buffer is None:
            buffer = self._log_scalars[key] = HistoryBuffer()
        buffer.update(_scalar(key, value), count)
        if self.recorder is not None:
            self.recorder(key, value)

    def update_scalars(self, log_dict: Mapping[str, object], resumed: bool = True) -> None:
        """Add several numbers; an entry may be a dict of ``value`` and ``count``."""
        for key, value in log_dict.items():
            if isinstance(value, Mapping):
                self.update_scalar(key, value["value"], value.get("count", 1), resumed)
            else:
                self.update_scalar(key, cast("float", value), 1, resumed)

    def get_scalar(self, key: str) -> HistoryBuffer:
        """Return a history."""
        if key not in self._log_scalars:
            there = ", ".join(self._log_scalars) or "none yet"
            raise KeyError(
                f"{key} is not found in Messagehub.log_buffers."
                f"{nearest(key, self._log_scalars)} There are: {there}."
            )
        return self._log_scalars[key]

    def update_info(self, key: str, value: object, resumed: bool = True) -> None:
        """Set a piece of information."""
        self._mark(key, resumed)
        self._runtime_info[key] = value

    def update_info_dict(self, info_dict: Mapping[str, object], resumed: bool = True) -> None:
        """Set several pieces of information."""
        for key, value in info_dict.items():
            self.update_info(key, value, resumed)

    def get_info(self, key: str, default: object = None) -> object:
        """Return a copy of a piece of information."""
        # A copy, so that a hook cannot change the value of another by accident.
        return copy.deepcopy(self._runtime_info[key]) if key in self._runtime_info else default

    def pop_info(self, key: str, default: object = None) -> object:
        """Remove a piece of information and return it."""
        return self._runtime_info.pop(key, default)

    def state_dict(self) -> dict[str, object]:
        """Return the resumed entries, in plain containers and tensors."""
        resumed_names = {key for key, resumed in self._resumed_keys.items() if resumed}
        return {
            "log_scalars": {
                key: history.state_dict()
                for key, history in self._log_scalars.items()
                if key in resumed_names
            },
            "runtime_info": {
                key: to_portable(value)  # A checkpoint holds plain types only.
                for key, value in self._runtime_info.items()
                if key in resumed_names
            },
            "resumed_keys": dict(self._resumed_keys),
        }

    def load_state_dict(self, state_dict: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""
        scalars = cast("Mapping[str, Mapping[str, object]]", state_dict.get("log_scalars", {}))
        for key, state in scalars.items():
            self._log_scalars[key] = HistoryBuffer.from_state(state)
        self._runtime_info |= cast("dict[str, object]", state_dict.get("runtime_info", {}))
        self._resumed_keys |= cast("dict[str, bool]", state_dict.get("resumed_keys", {}))

    def _mark(self, key: str, resumed: bool) -> None:
        # Two hooks that disagree would make it depend on their order what a checkpoint holds.
        before = self._resumed_keys.setdefault(key, resumed)
        assert before == resumed, (
            f"{key} used to be {before}, but got {resumed} now. resumed keys cannot be modified "
            "repeatedly."
        )


def _scalar(key: str, value: object) -> Tensor | float:
    """Return a number, or a copy of a tensor with one element; reject everything else."""
    if isinstance(value, Tensor):
        assert value.numel() == 1, (
            f"{key} must be a scalar, not a tensor of shape {tuple(value.shape)}."
        )
        return value.detach().clone()  # Its owner may change it in place later.
    if isinstance(value, np.ndarray | np.number):
        assert value.size == 1, f"{key} must be a scalar, not an array of shape {value.shape}."
        return float(value.item())
    assert isinstance(value, int | float), f"{key} must be a scalar, not {value!r}."
    return float(value)
