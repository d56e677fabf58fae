"""``mmengine.structures.InstanceData``: fields of one length, one entry per instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from hookloop_mmengine.structures.data_element import BaseDataElement


class InstanceData(BaseDataElement):
    """The boxes, labels and scores of the instances in one image, indexed together."""

    def __setattr__(self, name: str, value: object) -> None:
        is_field = name not in ("_data_fields", "_metainfo_fields")
        if is_field and not hasattr(value, "__len__"):
            raise AssertionError(f"{name} needs one entry per instance, not {value!r}.")
        if is_field and self._data_fields - {name} and len(value) != len(self):  # type: ignore[arg-type]
            raise AssertionError(
                f"The length of {name} is {len(value)}, but the other fields have {len(self)}."  # type: ignore[arg-type]
            )
        super().__setattr__(name, value)

    def __len__(self) -> int:
        return len(cast("Sequence[object]", self.values()[0])) if self._data_fields else 0

    def __getitem__(self, item: object) -> object:
        """Return a field by its name, or some of the instances."""
        if isinstance(item, str):
            return getattr(self, item)
        if isinstance(item, int):
            if not -len(self) <= item < len(self):  # A slice would silently be empty.
                raise IndexError(f"Index {item} out of range!")
            item = slice(item, item + 1 or None)  # A slice keeps the dimension; -1 ends at None.
        if isinstance(item, list):
            item = np.array(item)
        chosen = type(self)(metainfo=self.metainfo)
        for name, value in self.items():
            chosen.set_field(_select(value, item), name)
        return chosen

    @staticmethod
    def cat(instances_list: list[InstanceData]) -> InstanceData:
        """Return one element with the instances of several."""
        first = instances_list[0]
        for instances in instances_list[1:]:
            if set(instances.keys()) != set(first.keys()):
                raise AssertionError(
                    f"There are different keys in `instances_list`: {sorted(first.keys())} and "
                    f"{sorted(instances.keys())}."
                )
        whole = type(first)(metainfo=first.metainfo)
        for name in first.keys():  # noqa: SIM118 - an element is not iterable
            whole.set_field(_join([getattr(part, name) for part in instances_list]), name)
        return whole


def _select(value: object, item: object) -> object:
    # Torch and numpy do not accept each other's arrays of indices.
    if isinstance(value, Tensor) and isinstance(item, np.ndarray):
        return value[torch.from_numpy(item)]
    if isinstance(value, np.ndarray) and isinstance(item, Tensor):
        return value[item.cpu().numpy()]
    if isinstance(value, Tensor | np.ndarray) or isinstance(item, slice):
        return value[item]  # type: ignore[index]
    # Lists take neither masks nor lists of indices, so both become indices.
    chosen = np.arange(len(value))[np.asarray(item)]  # type: ignore[arg-type]
    entries = [value[index] for index in chosen]  # type: ignore[index]
    return "".join(entries) if isinstance(value, str) else type(value)(entries)  # type: ignore[call-arg]


def _join(parts: list[object]) -> object:
    if isinstance(parts[0], Tensor):
        return torch.cat(cast("list[Tensor]", parts))
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(
            cast("list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]", parts)
        )
    if isinstance(parts[0], str):
        return "".join(cast("list[str]", parts))
    return type(parts[0])(entry for part in parts for entry in part)  # type: ignore[call-arg, attr-defined]
