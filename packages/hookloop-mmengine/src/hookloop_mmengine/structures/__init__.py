"""``mmengine.structures``: a sample, with its annotations and predictions."""

from __future__ import annotations

from hookloop_mmengine.structures.data_element import BaseDataElement
from hookloop_mmengine.structures.instance_data import InstanceData
from hookloop_mmengine.structures.label_data import LabelData
from hookloop_mmengine.structures.pixel_data import PixelData

__all__ = ["BaseDataElement", "InstanceData", "LabelData", "PixelData"]
