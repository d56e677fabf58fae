"""`AttrDict`: a config of VISSL, whose entries are attributes too."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Self

from hookloop.dialects import ConfigView


class AttrDict(ConfigView):
    """A dictionary, also in its nested parts, with attributes that can be read, set and deleted.

    >>> config = AttrDict({"LOSS": {"name": "moco_loss"}})
    >>> config.LOSS.momentum = 0.9
    >>> config["LOSS"]
    {'name': 'moco_loss', 'momentum': 0.9}
    """

    def __init__(self, dictionary: Mapping[str, object]) -> None:
        super().__init__(dictionary)

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self:
            raise AttributeError(f"the config has no '{name}'")
        del self[name]

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self]

    # Attributes are entries, so that copies and pickles must not treat them as the object's own.
    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(copy.deepcopy(dict(self), memo))

    def __reduce__(self) -> tuple[type, tuple[dict[str, object]]]:
        return type(self), (dict(self),)

    def to_dict(self) -> dict[str, object]:
        """Return plain dictionaries."""
        return {k: v.to_dict() if isinstance(v, AttrDict) else v for k, v in self.items()}
