"""The classes that hook files import from ``emloop.datasets`` for their annotations."""

from __future__ import annotations


class AbstractDataset:
    """A data set with methods ``<stream>_stream``."""


class BaseDataset(AbstractDataset):
    """A data set made from a config."""
