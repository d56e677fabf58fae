"""``mmengine.structures``: a sample, with its annotations and predictions."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.missing import reject
from hookloop_mmengine.structures.data_element import BaseDataElement

__all__ = ["BaseDataElement"]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
