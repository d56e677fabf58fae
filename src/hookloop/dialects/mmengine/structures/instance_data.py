"""``mmengine.structures.InstanceData``: fields of one length, one entry per instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from hookloop.dialects.mmengine.structures.data_element import BaseDataElement


class InstanceData(BaseDataElement):
    """Boxes, labels, scores of the instances of one picture, indexed together."""

    def __setattr__(self, name: str, value: object) -> None:
        is_field = name not in ("_data_fields", "_metainfo_fields")
        if is_field and self._data_fields - {name} and len(value) != len(self):  # type: ignore[arg-type]
            raise AssertionError(
                f"The length of {name} is {len(value)}, that of the other fields {len(self)}."  # type: ignore[arg-type]
            )
        super().__setattr__(name, value)

    def __len__(self) -> int:
        return len(cast("Sequence[object]", self.values()[0])) if self._data_fields else 0

    def __getitem__(self, item: object) -> object:
        """Return a field by its name, or some of the instances."""
        if isinstance(item, str):
            return getattr(self, item)
        if isinstance(item, int):
            item = slice(item, item + 1 or None)
        if isinstance(item, list):
            item = np.array(item)
        made = type(self)(metainfo=self.metainfo)
        for name, value in self.items():
            made.set_field(_some(value, item), name)
        return made

    @staticmethod
    def cat(instances_list: list[InstanceData]) -> InstanceData:
        """Join the instances of several."""
        first = instances_list[0]
        made = type(first)(metainfo=first.metainfo)
        for name, value in first.items():
            parts = [value, *(getattr(one, name) for one in instances_list[1:])]
            made.set_field(_joined(parts), name)
        return made


def _some(value: object, item: object) -> object:
    if isinstance(value, Tensor) and isinstance(item, np.ndarray):
        return value[torch.from_numpy(item)]
    if isinstance(value, np.ndarray) and isinstance(item, Tensor):
        return value[item.cpu().numpy()]
    if isinstance(value, Tensor | np.ndarray) or isinstance(item, slice):
        return value[item]  # type: ignore[index]
    chosen = np.arange(len(value))[np.asarray(item)]  # type: ignore[arg-type]
    return type(value)(value[place] for place in chosen)  # type: ignore[call-arg, index]


def _joined(parts: list[object]) -> object:
    if isinstance(parts[0], Tensor):
        return torch.cat(cast("list[Tensor]", parts))
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(
            cast("list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]", parts)
        )
    return type(parts[0])(one for part in parts for one in part)  # type: ignore[call-arg, attr-defined]
