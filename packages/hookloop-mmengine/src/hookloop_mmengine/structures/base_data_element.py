"""``mmengine.structures.base_data_element``: the base, under the name that files import."""

from __future__ import annotations

from hookloop_mmengine.structures.data_element import BaseDataElement

__all__ = ["BaseDataElement"]
