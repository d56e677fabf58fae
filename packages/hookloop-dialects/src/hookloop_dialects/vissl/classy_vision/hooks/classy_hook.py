"""`ClassyHook`: the base class of the hooks of ClassyVision and VISSL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


class ClassyHookState:
    """Attributes that a checkpoint keeps: numbers, text, containers and tensors."""

    def get_classy_state(self) -> dict[str, Any]:
        """Return the attributes themselves, not a copy."""
        return self.__dict__

    def set_classy_state(self, state_dict: Mapping[str, Any]) -> None:
        """Set attributes; the others stay, for hooks that are newer than their checkpoint."""
        self.__dict__.update(state_dict)


class ClassyHookFunctions(Enum):
    """ClassyVision's events."""

    on_start = auto()
    on_phase_start = auto()
    on_forward = auto()
    on_loss_and_meter = auto()
    on_step = auto()
    on_phase_end = auto()
    on_end = auto()


class ClassyHook(ABC):
    """A hook; a subclass defines five events, or sets those it does not need to ``_noop``.

    The other events are optional: ``on_forward``, ``on_loss_and_meter``, ``on_backward``,
    ``on_update`` and ``on_exception``.
    """

    def __init__(self) -> None:
        self.state = ClassyHookState()

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make the hook from its settings."""
        return cls(**config)

    @classmethod
    def name(cls) -> str:
        """Return the name of the class."""
        return cls.__name__

    # The adapter recognises this method by its name and does not attach it.
    def _noop(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, B027 - stands for any
        """Do nothing."""

    @abstractmethod
    def on_start(self, task: Task) -> None:
        """Act before anything else."""

    @abstractmethod
    def on_phase_start(self, task: Task) -> None:
        """Act when a phase begins."""

    @abstractmethod
    def on_step(self, task: Task) -> None:
        """Act after each batch."""

    @abstractmethod
    def on_phase_end(self, task: Task) -> None:
        """Act when a phase ends."""

    @abstractmethod
    def on_end(self, task: Task) -> None:
        """Act when the training ends."""

    def get_classy_state(self) -> dict[str, Any]:
        """Return the state that a checkpoint keeps."""
        return self.state.get_classy_state()

    def set_classy_state(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state."""
        self.state.set_classy_state(state_dict)


class QuietHook(ClassyHook):
    """A hook that does nothing: the base of those that need only one or two events."""

    on_start = ClassyHook._noop
    on_phase_start = ClassyHook._noop
    on_step = ClassyHook._noop
    on_phase_end = ClassyHook._noop
    on_end = ClassyHook._noop
