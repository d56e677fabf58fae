"""The hooks of a config once they are made: each checked by itself, with its place at hand.

The plan would refuse the same, but one fault at a time and without knowing the file.
"""

from __future__ import annotations

from hookloop.config.parts.part import Part
from hookloop.config.tree import Config, Key, spell
from hookloop.core.checks import check_hook
from hookloop.core.hook import Hook
from hookloop.core.points import PointTable
from hookloop.errors import Fault, HookError
from hookloop.trainer.adapters import adapt, numbered


class MadeHooks:
    """Hooks of one config, in order.

    Args:
        config: The config.
        points: The mount points that they may act at.

    Attributes:
        faults: What is wrong with those that were taken.
    """

    def __init__(self, config: Config, points: PointTable) -> None:
        self.config = config
        self.points = points
        self.faults: list[Fault] = []
        self._taken: list[tuple[object, list[Hook]]] = []
        self._keys: list[tuple[Hook, Key]] = []

    def take(self, key: Key, part: object, made: object) -> list[Hook]:
        """Take a hook, or what stands for a foreign one; return it in our form."""
        try:
            ours = adapt(made)
            every = part.settings.get("every") if isinstance(part, Part) else None
            if every is not None and made not in ours:
                _limit(ours, every, type(made).__name__)
            for hook in ours:
                check_hook(hook, self.points)
        except HookError as error:
            self._fault(key, str(error))
            return []
        self._taken.append((made, ours))
        self._keys += [(hook, key) for hook in ours]
        return ours

    def all(self) -> list[Hook]:
        """Return those taken so far; two of one name are a fault."""
        hooks = numbered(self._taken)
        first: set[str] = set()
        for hook, key in self._keys:
            if hook.name in first:
                self._fault(
                    key,
                    f"another hook is named '{hook.name}', too: give this one a name of its own, "
                    f"{{type: {type(hook).__name__}, name: {hook.name}_2, ...}}.",
                )
            first.add(hook.name)
        return hooks

    def place_of(self, name: str) -> Key | None:
        """Return where the hook of a name is written."""
        return next((key for hook, key in self._keys if hook.name == name), None)

    def _fault(self, key: Key, message: str) -> None:
        self.faults.append(Fault(f"{spell(key)}: {message}", self.config.where(key)))


def _limit(hooks: list[Hook], every: object, kind: str) -> None:
    """Limit a foreign hook, which knows nothing of our schedules, as the config says."""
    for hook in hooks:
        if hook.every is not None or len(hooks) > 1:
            raise HookError(f"'every' cannot limit {kind}: it has arguments of its own for that.")
        hook.every = every  # type: ignore[assignment]
