"""`ConfigView`: the run's config in the form that foreign hooks read."""

from __future__ import annotations

from collections.abc import Mapping

from hookloop.errors import nearest


class ConfigView(dict[str, object]):
    """A config with attributes and items, like ``task.config`` and ``trainer.cfg``."""

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__(
            {k: ConfigView(v) if isinstance(v, Mapping) else v for k, v in values.items()}
        )

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError as error:  # hasattr and getattr with a default expect this type.
            raise AttributeError(str(error)) from error

    def __missing__(self, name: str) -> object:
        raise KeyError(
            f"the config has no '{name}'.{nearest(name, self)} Set it with "
            f"Trainer(config={{'{name}': ...}})."
        )

    def find(self, path: str, default: object = None) -> object:
        """Return the value at a dotted path, or the default."""
        found: object = self
        for key in path.split("."):
            if not isinstance(found, Mapping) or key not in found:
                return default
            found = found[key]
        return found
