"""``mmengine.visualization.utils``: check and convert what drawing functions are given."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from torch import Tensor

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
Color = str | tuple[float, ...]
Colors = Color | list[Color]


def tensor2ndarray(value: Array | Tensor) -> Array:
    """Return an array; a tensor is copied to the CPU."""
    return cast("Array", value.detach().cpu().numpy()) if isinstance(value, Tensor) else value


def value2list(value: object, valid_type: type | tuple[type, ...], expand_dim: int) -> list[Any]:
    """Return a list that repeats a value of the type; a list stays as it is."""
    return [value] * expand_dim if isinstance(value, valid_type) else cast("list[Any]", value)


def check_type(name: str, value: object, valid_type: type | tuple[type, ...]) -> None:
    """Raise if a value is not of a type."""
    if not isinstance(value, valid_type):
        raise TypeError(f"`{name}` should be {valid_type}  but got {type(value)}")


def check_length(name: str, value: object, valid_length: int) -> None:
    """Raise if a list is too short."""
    if isinstance(value, list) and len(value) < valid_length:
        raise AssertionError(
            f"The length of {name} must equal with or greater than {valid_length}, but got "
            f"{len(value)}"
        )


def check_type_and_length(
    name: str, value: object, valid_type: type | tuple[type, ...], valid_length: int
) -> None:
    """Raise if a value is not of a type, or a list that is too short."""
    check_type(name, value, valid_type)
    check_length(name, value, valid_length)


def color_val_matplotlib(colors: Colors) -> Colors:
    """Return colors as matplotlib needs them: with numbers from 0 to 1 and not to 255."""
    if isinstance(colors, str):
        return colors
    if isinstance(colors, list):
        return [cast("Color", color_val_matplotlib(color)) for color in colors]
    if not isinstance(colors, tuple):
        raise TypeError(f"Invalid type for color: {type(colors)}")
    _check_color(colors)
    return tuple(channel / 255 for channel in colors)


def color_str2rgb(color: str) -> tuple[int, ...]:
    """Return the three numbers of a color that matplotlib knows by name."""
    from matplotlib.colors import to_rgb

    return tuple(int(channel * 255) for channel in to_rgb(color))


def as_rgb(color: Color) -> tuple[float, ...]:
    """Return the three numbers of a color."""
    rgb = color_str2rgb(color) if isinstance(color, str) else color
    _check_color(rgb)
    return rgb


def _check_color(color: tuple[float, ...]) -> None:
    if len(color) != 3 or not all(0 <= channel <= 255 for channel in color):
        raise AssertionError(f"A color has three numbers from 0 to 255, but got {color}")
