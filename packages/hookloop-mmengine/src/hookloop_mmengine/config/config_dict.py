"""``mmengine.config.ConfigDict``: a dict whose entries are also attributes."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

Pairs = Mapping[str, object] | Iterable[tuple[str, object]]


class ConfigDict(dict[str, object]):
    """A dict with attribute access; dicts, lists and tuples inside it have it too.

    >>> cfg = ConfigDict(model=dict(type="Net", layers=[dict(size=3)]))
    >>> cfg.model.type, cfg.model.layers[0].size, cfg.get("data")
    ('Net', 3, None)
    """

    def __init__(self, pairs: Pairs = (), /, **kwargs: object) -> None:
        super().__init__()
        self.update(pairs, **kwargs)

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

    def update(self, pairs: Pairs = (), /, **kwargs: object) -> None:  # type: ignore[override]
        """Set several entries."""
        # dict.update would bypass __setitem__ and leave plain dicts inside.
        for key, value in dict(pairs, **kwargs).items():
            self[key] = value

    def setdefault(self, key: str, default: object = None) -> object:
        """Set an entry unless it is there; return it."""
        if key not in self:
            self[key] = default
        return self[key]

    def copy(self) -> ConfigDict:
        """Return a copy that shares the entries."""
        return copy.copy(self)

    def __copy__(self) -> ConfigDict:
        copied = type(self)()
        for key, value in self.items():
            dict.__setitem__(copied, key, value)  # Our own __setitem__ would copy the lists.
        return copied

    def __deepcopy__(self, memo: dict[int, object]) -> ConfigDict:
        return type(self)({key: copy.deepcopy(value, memo) for key, value in self.items()})

    def to_dict(self) -> dict[str, object]:
        """Return plain dicts on every level."""
        return plain_dict(self)


def attributed(value: object) -> object:
    """Turn dicts, also those in lists and tuples, into dicts with attributes."""
    if isinstance(value, ConfigDict):
        return value
    if isinstance(value, dict):
        return ConfigDict(value)
    if type(value) in (list, tuple):  # A subclass, such as a named tuple, is left as it is.
        return type(value)(attributed(entry) for entry in value)  # type: ignore[call-arg, attr-defined]
    return value


def plain_dict(value: Mapping[str, object]) -> dict[str, object]:
    """Turn dicts with attributes into plain ones."""

    def walk(node: object) -> object:
        if isinstance(node, Mapping):
            return {key: walk(part) for key, part in node.items()}
        if type(node) in (list, tuple):
            return type(node)(walk(part) for part in node)  # type: ignore[call-arg, attr-defined]
        return node

    return {key: walk(part) for key, part in value.items()}


def merged(base: Mapping[str, object], child: Mapping[str, object]) -> dict[str, object]:
    """Merge a child over its base.

    Dicts are merged by key and everything else is replaced; a dict with ``_delete_=True`` replaces.
    """
    result = dict(base)
    for key, value in child.items():
        old = result.get(key)
        if isinstance(value, Mapping):
            # The marker is for the merge and not an entry.
            inner = {name: part for name, part in value.items() if name != "_delete_"}
            deletes = bool(value.get("_delete_"))
            if isinstance(old, Mapping) and not deletes:
                result[key] = merged(old, inner)
            else:
                result[key] = merged({}, inner)
        else:
            result[key] = value
    return result
