"""``emloop.datasets``: classes of data sets, which hook files import for their annotations."""

from __future__ import annotations

from hookloop_dialects.emloop.datasets.abstract_dataset import AbstractDataset
from hookloop_dialects.emloop.datasets.base_dataset import BaseDataset
from hookloop_dialects.emloop.datasets.stream_wrapper import StreamWrapper

__all__ = ["AbstractDataset", "BaseDataset", "StreamWrapper"]
