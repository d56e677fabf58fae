"""``emloop.datasets.abstract_dataset``: the class of all data sets."""

from __future__ import annotations


class AbstractDataset:
    """A data set with methods ``<stream>_stream``, each of which returns batches.

    Args:
        config_str: Its config, as YAML.
    """

    def __init__(self, config_str: str) -> None:
        """Accept the config; a subclass reads it."""
