"""``emloop.models.abstract_model``: the class that hook files import for their annotations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from hookloop_dialects.emloop.datasets import AbstractDataset, StreamWrapper
from hookloop_dialects.emloop.types import Batch


class AbstractModel(ABC):
    """A model of emloop: it computes, trains and saves itself.

    Args:
        dataset: The data set.
        log_dir: Where it writes.
        restore_from: What it continues from, if from anything.
        kwargs: The section ``model`` of the config.
    """

    @abstractmethod
    def __init__(
        self,
        dataset: AbstractDataset | None,
        log_dir: str,
        restore_from: str | None = None,
        **kwargs: object,
    ) -> None: ...

    @property
    @abstractmethod
    def input_names(self) -> Iterable[str]:
        """Names of the variables that it reads."""

    @property
    @abstractmethod
    def output_names(self) -> Iterable[str]:
        """Names of the variables that it computes."""

    @abstractmethod
    def run(self, batch: Batch, train: bool, stream: StreamWrapper) -> Batch:
        """Compute the outputs of a batch, and train on it if ``train`` is true."""

    @abstractmethod
    def save(self, name_suffix: str) -> str:
        """Save the model and return its path."""
