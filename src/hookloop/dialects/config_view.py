"""`ConfigView`: the run's config in the form that foreign hooks read."""

from __future__ import annotations

from collections.abc import Mapping

from hookloop.errors import nearest


class ConfigView(dict[str, object]):
    """A config with attributes and items, like ``task.config`` and ``trainer.cfg``."""

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__(
            {k: type(self)(v) if isinstance(v, Mapping) else v for k, v in values.items()}
        )

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError as error:  # hasattr and getattr with a default expect this type.
            raise AttributeError(str(error)) from error

    def __missing__(self, name: str) -> object:
        raise KeyError(
            f"the config has no '{name}'.{nearest(name, self)} Set it with "
            f"Trainer(setup=Setup(config={{'{name}': ...}}))."
        )

    def find(self, path: str, default: object = None) -> object:
        """Return the value at a dotted path, or the default."""
        found: object = self
        for key in path.split("."):
            if not isinstance(found, Mapping) or key not in found:
                return default
            found = found[key]
        return found


def with_own_values(config: Mapping[str, object]) -> dict[str, object]:
    """Return a config whose entry ``vars``, the user's own values, is among the others too.

    A config file accepts no other keys that the engine does not know.

    >>> with_own_values({"vars": {"a": 1}, "b": 2})["a"]
    1
    """
    own = config.get("vars")
    return {**(own if isinstance(own, Mapping) else {}), **config}
