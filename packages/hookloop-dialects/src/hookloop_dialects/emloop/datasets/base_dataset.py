"""``emloop.datasets.base_dataset``: a data set made from the entries of a config."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod

import numpy as np

from hookloop_dialects.emloop.datasets.abstract_dataset import AbstractDataset
from hookloop_dialects.emloop.utils.yaml import parse_yaml

_log = logging.getLogger()  # emloop logs with the root logger.


class BaseDataset(AbstractDataset, ABC):
    """A data set that gets the entries of its config as arguments; for the argument see there."""

    def __init__(self, config_str: str) -> None:
        super().__init__(config_str)
        self._configure_dataset(**(parse_yaml(config_str) or {}))

    @abstractmethod
    def _configure_dataset(self, output_dir: str | None = None, **kwargs: object) -> None:
        """Prepare the data."""

    def stream_info(self) -> None:
        """Log the name, type and shape of each variable of the first batch of every stream."""
        for name in [name for name in dir(self) if name.endswith("_stream")]:
            batch: dict[str, object] = next(iter(getattr(self, name)()), {})
            _log.info("%s", name)
            for variable, value in batch.items():
                array = np.asarray(value)
                _log.info("\t%s  %s  %s", variable, array.dtype, array.shape)
