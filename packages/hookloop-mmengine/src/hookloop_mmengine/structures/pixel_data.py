"""``mmengine.structures.PixelData``: fields with a value for each pixel."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from torch import Tensor

from hookloop_mmengine.structures.data_element import BaseDataElement

Index = int | slice


class PixelData(BaseDataElement):
    """Maps of one height and width: tensors or arrays of channels, height and width."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("_data_fields", "_metainfo_fields"):
            super().__setattr__(name, value)
            return
        if not isinstance(value, Tensor | np.ndarray):
            raise AssertionError(f"{name} should be a tensor or an array, not {type(value)}.")
        if self.shape is not None and tuple(value.shape[-2:]) != self.shape:
            raise AssertionError(
                f"The height and width of {name} are {tuple(value.shape[-2:])}, but those of the "
                f"other fields are {self.shape}."
            )
        if value.ndim not in (2, 3):
            raise AssertionError(f"{name} has {value.ndim} dimensions, not 2 or 3.")
        # All fields have the channels first, of which a plain map has one.
        super().__setattr__(name, value[None] if value.ndim == 2 else value)

    @property
    def shape(self) -> tuple[int, int] | None:
        """The height and width, or None without fields."""
        for value in self.values():
            return cast("tuple[int, int]", tuple(cast("Any", value).shape[-2:]))
        return None

    def __getitem__(self, item: tuple[Index, Index]) -> PixelData:
        """Return the fields of a part: rows and columns, as numbers or slices."""
        if not isinstance(item, tuple):
            raise TypeError(f"Unsupported type {type(item)} for slicing PixelData")
        if len(item) != 2:
            raise AssertionError(f"A part is given by its rows and columns, not by {item!r}.")
        if self.shape is None:
            raise AssertionError("There are no fields to take a part of.")
        rows, columns = (_as_slice(one, size) for one, size in zip(item, self.shape, strict=True))
        part = type(self)(metainfo=self.metainfo)
        for name, value in self.items():
            part.set_field(cast("Any", value)[:, rows, columns], name)
        return part


def _as_slice(index: Index, size: int) -> slice:
    if isinstance(index, slice):
        return index
    if not isinstance(index, int):
        raise TypeError(f"A row or column is a number or a slice, not {type(index)}.")
    if not -size <= index < size:  # A slice would silently be empty.
        raise IndexError(f"Index {index} out of range!")
    # A slice keeps the dimension; -1 ends at None.
    return slice(index, index + 1 or None)
