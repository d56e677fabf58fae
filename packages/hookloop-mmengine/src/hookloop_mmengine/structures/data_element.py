"""``mmengine.structures.BaseDataElement``: data and meta information under attribute names."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Self, cast

import numpy as np
from torch import Tensor

_PRIVATE = ("_data_fields", "_metainfo_fields")


class BaseDataElement:
    """Data that a model changes and meta information that it does not, both as attributes.

    Args:
        metainfo: The meta information; it cannot be set as an attribute.
        kwargs: The data.
    """

    def __init__(self, *, metainfo: Mapping[str, object] | None = None, **kwargs: object) -> None:
        self._metainfo_fields: set[str] = set()
        self._data_fields: set[str] = set()
        if metainfo is not None:
            self.set_metainfo(metainfo)
        if kwargs:
            self.set_data(kwargs)

    # --- setting

    def set_metainfo(self, metainfo: Mapping[str, object]) -> None:
        """Set or change meta information."""
        # A copy: loaders share one dict of meta information among samples.
        for name, value in copy.deepcopy(dict(metainfo)).items():
            self.set_field(value, name, field_type="metainfo")

    def set_data(self, data: Mapping[str, object]) -> None:
        """Set or change data."""
        for name, value in data.items():
            setattr(self, name, value)

    def update(self, instance: BaseDataElement) -> None:
        """Copy all fields of another element into this one."""
        self.set_metainfo(dict(instance.metainfo_items()))
        self.set_data(dict(instance.items()))

    def set_field(
        self,
        value: object,
        name: str,
        dtype: type | tuple[type, ...] | None = None,
        field_type: str = "data",
    ) -> None:
        """Set one field; a name is data or meta information, never both."""
        # Subclasses check the types of their fields this way.
        if dtype is not None and not isinstance(value, dtype):
            raise AssertionError(f"{value!r} should be a {dtype} but got {type(value)}")
        fields, others = self._data_fields, self._metainfo_fields
        if field_type == "metainfo":
            fields, others = others, fields
        if name in others:
            raise AttributeError(f"'{name}' is already used, as {_kind(field_type != 'metainfo')}.")
        fields.add(name)
        # Our own __setattr__ would call this method again.
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _PRIVATE:
            if name in self.__dict__:
                raise AttributeError(f"{name} has been used as a private attribute.")
            object.__setattr__(self, name, value)
        else:
            self.set_field(value, name)

    def __delattr__(self, name: str) -> None:
        if name in _PRIVATE:
            raise AttributeError(f"{name} has been used as a private attribute.")
        object.__delattr__(self, name)
        self._data_fields.discard(name)
        self._metainfo_fields.discard(name)

    __delitem__ = __delattr__

    # --- reading

    def keys(self) -> list[str]:
        """Return the names of the data."""
        # Subclasses store a field as _boxes and offer it as the property boxes.
        hidden = {name for name in self._data_fields if name.startswith("_")}
        shown = {
            name[1:] for name in hidden if isinstance(getattr(type(self), name[1:], 0), property)
        }
        return [*(self._data_fields - {f"_{name}" for name in shown}), *shown]

    def metainfo_keys(self) -> list[str]:
        """Return the names of the meta information."""
        return list(self._metainfo_fields)

    def metainfo_values(self) -> list[object]:
        """Return the meta information."""
        return [getattr(self, name) for name in self.metainfo_keys()]

    def all_keys(self) -> list[str]:
        """Return all names."""
        return self.metainfo_keys() + self.keys()

    def values(self) -> list[object]:
        """Return the data."""
        return [getattr(self, name) for name in self.keys()]

    def all_values(self) -> list[object]:
        """Return everything, in the order of `all_keys`."""
        return self.metainfo_values() + self.values()

    def items(self) -> Iterator[tuple[str, object]]:
        """Yield the data with their names."""
        for name in self.keys():
            yield name, getattr(self, name)

    def metainfo_items(self) -> Iterator[tuple[str, object]]:
        """Yield the meta information with its names."""
        for name in self.metainfo_keys():
            yield name, getattr(self, name)

    def all_items(self) -> Iterator[tuple[str, object]]:
        """Yield everything."""
        yield from self.metainfo_items()
        yield from self.items()

    @property
    def metainfo(self) -> dict[str, object]:
        """The meta information."""
        return dict(self.metainfo_items())

    def get(self, key: str, default: object = None) -> object:
        """Return a field, or the default."""
        return getattr(self, key, default)

    # Positional arguments only, because None is a valid default.
    def pop(self, *args: object) -> object:
        """Remove a field and return it, or the default if one is given."""
        if len(args) > 2:
            raise AssertionError("pop() takes a name and at most one default.")
        name = cast("str", args[0])
        if name in self._data_fields | self._metainfo_fields:
            value = getattr(self, name)
            delattr(self, name)
            return value
        if len(args) > 1:
            return args[1]
        raise KeyError(f"{name} is not contained in metainfo or data")

    def __contains__(self, item: str) -> bool:
        return item in self._data_fields or item in self._metainfo_fields

    # --- copies

    def new(self, *, metainfo: Mapping[str, object] | None = None, **kwargs: object) -> Self:
        """Return an element of the same class; fields that are not given come from this one."""
        element = type(self)()
        element.set_metainfo(metainfo if metainfo is not None else self.metainfo)
        element.set_data(kwargs or dict(self.items()))
        return element

    def clone(self) -> Self:
        """Return a deep copy."""
        element = type(self)()
        element.set_metainfo(self.metainfo)
        element.set_data(copy.deepcopy(dict(self.items())))
        return element

    def to_tensor(self) -> Self:
        """Return an element with tensors instead of arrays."""
        return self._map(
            (np.ndarray, BaseDataElement),
            lambda value: (
                value.to_tensor() if isinstance(value, BaseDataElement) else _tensor(value)
            ),
        )

    def to(self, *args: object, **kwargs: object) -> Self:
        """Return an element whose tensors are on a device."""
        return self._map((Tensor, BaseDataElement), lambda value: value.to(*args, **kwargs))  # type: ignore[attr-defined]

    def cpu(self) -> Self:
        """Return an element on the CPU."""
        return self.to("cpu")

    def cuda(self) -> Self:
        """Return an element on the GPU."""
        return self.to("cuda")

    def detach(self) -> Self:
        """Return an element without gradients."""
        return self._map((Tensor, BaseDataElement), lambda value: value.detach())  # type: ignore[attr-defined]

    def numpy(self) -> Self:
        """Return an element with arrays instead of tensors."""
        return self._map((Tensor, BaseDataElement), _array)

    def _map(self, kinds: type | tuple[type, ...], change: Callable[[object], object]) -> Self:
        """Return an element whose values of some types are changed; the others are shared."""
        element = self.new()
        element.set_data({k: change(v) for k, v in self.items() if isinstance(v, kinds)})
        return element

    def to_dict(self) -> dict[str, object]:
        """Return everything as nested dicts."""
        return {
            name: value.to_dict() if isinstance(value, BaseDataElement) else value
            for name, value in self.all_items()
        }

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.all_items())
        return f"{type(self).__name__}({fields})"


def _kind(is_metainfo: bool) -> str:
    return "meta information" if is_metainfo else "data"


def _tensor(array: object) -> Tensor:
    import torch

    return torch.from_numpy(cast("np.ndarray[tuple[int, ...], np.dtype[np.generic]]", array))


def _array(value: object) -> object:
    if isinstance(value, Tensor):
        return value.detach().cpu().numpy()
    return cast("BaseDataElement", value).numpy()
