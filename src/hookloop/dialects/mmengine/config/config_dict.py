"""``mmengine.config.ConfigDict``: a dict whose entries are attributes as well."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

Pairs = Mapping[str, object] | Iterable[tuple[str, object]]


class ConfigDict(dict[str, object]):
    """A dict with attribute access, also inside of it.

    >>> cfg = ConfigDict(model=dict(type="Net", layers=[dict(size=3)]))
    >>> cfg.model.type, cfg.model.layers[0].size, cfg.get("data")
    ('Net', 3, None)
    """

    def __init__(self, given: Pairs = (), /, **kwargs: object) -> None:
        super().__init__()
        self.update(given, **kwargs)

    def __setitem__(self, key: str, value: object) -> None:
        super().__setitem__(key, attributed(value))

    def __getattr__(self, name: str) -> object:
        if name in self:
            return self[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self:
            raise AttributeError(name)
        del self[name]

    def update(self, given: Pairs = (), /, **kwargs: object) -> None:  # type: ignore[override]
        """Set several entries."""
        for key, value in dict(given, **kwargs).items():
            self[key] = value

    def setdefault(self, key: str, default: object = None) -> object:
        """Set an entry unless it is there; return it."""
        if key not in self:
            self[key] = default
        return self[key]

    def copy(self) -> ConfigDict:
        """Copy the outermost dict."""
        return copy.copy(self)

    def __copy__(self) -> ConfigDict:
        other = type(self)()
        for key, value in self.items():
            dict.__setitem__(other, key, value)
        return other

    def __deepcopy__(self, memo: dict[int, object]) -> ConfigDict:
        return type(self)({key: copy.deepcopy(value, memo) for key, value in self.items()})

    def to_dict(self) -> dict[str, object]:
        """Return plain dicts all through."""
        return plain_dict(self)


def attributed(value: object) -> object:
    """Turn dicts inside of lists and tuples into dicts with attributes."""
    if isinstance(value, ConfigDict):
        return value
    if isinstance(value, dict):
        return ConfigDict(value)
    if type(value) in (list, tuple):
        return type(value)(attributed(one) for one in value)  # type: ignore[call-arg, attr-defined]
    return value


def plain_dict(value: Mapping[str, object]) -> dict[str, object]:
    """Turn dicts with attributes into plain ones."""

    def walk(one: object) -> object:
        if isinstance(one, Mapping):
            return {key: walk(part) for key, part in one.items()}
        if type(one) in (list, tuple):
            return type(one)(walk(part) for part in one)  # type: ignore[call-arg, attr-defined]
        return one

    return {key: walk(part) for key, part in value.items()}


def merged(base: Mapping[str, object], child: Mapping[str, object]) -> dict[str, object]:
    """Merge a child over its base: dicts by key, all else replaces, ``_delete_`` replaces dicts."""
    result = dict(base)
    for key, value in child.items():
        old = result.get(key)
        if isinstance(value, Mapping):
            inner = {name: part for name, part in value.items() if name != "_delete_"}
            deletes = bool(value.get("_delete_"))
            if isinstance(old, Mapping) and not deletes:
                result[key] = merged(old, inner)
            else:
                result[key] = merged({}, inner)
        else:
            result[key] = value
    return result
