"""`GenericSSLDataset`: the kinds of data that hooks of VISSL ask for."""

from __future__ import annotations

from torch.utils.data import Dataset


class GenericSSLDataset(Dataset[object]):
    """The base of data sets with ``data_objs`` and ``label_objs``; derive from it to have them."""

    data_objs: list[object]
    label_objs: list[object]


class AirstoreDataset(Dataset[object]):
    """A kind of data that only its authors have; nothing is one."""
