"""`EveryNEpoch`: the base of hooks that act every n-th epoch."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook


class EveryNEpoch(AbstractHook, ABC):
    """Call ``_after_n_epoch`` after every n-th epoch, and after the zeroth.

    Args:
        n_epochs: The n.
        kwargs: See `AbstractHook`.
    """

    def __init__(self, n_epochs: int = 1, **kwargs: object) -> None:
        super().__init__(**kwargs)
        if n_epochs < 1:  # emloop divides by zero after the first epoch.
            raise ValueError(f"n_epochs must be at least 1, not {n_epochs}.")
        self._n_epochs = n_epochs

    @abstractmethod
    def _after_n_epoch(self, epoch_id: int, **kwargs: object) -> None:
        """Act."""

    def after_epoch(self, epoch_id: int, **kwargs: object) -> None:
        if epoch_id % self._n_epochs == 0:
            self._after_n_epoch(epoch_id=epoch_id, **kwargs)
