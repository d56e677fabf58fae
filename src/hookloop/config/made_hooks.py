"""The hooks of a config after they are built: each is checked, and its line is known.

The plan would reject the same, but one problem at a time and without the line.
"""

from __future__ import annotations

from hookloop.config.parts.part import Part
from hookloop.config.tree import Config, Key, spell
from hookloop.engine.checks import check_hook
from hookloop.engine.hook import Hook
from hookloop.engine.points import PointTable
from hookloop.errors import HookError, Problem
from hookloop.trainer.adapters import adapt, numbered
from hookloop.trainer.planning import declare_points


class MadeHooks:
    """The hooks of one config, in order.

    Args:
        config: The config.
        points: The mount points at which they may act.

    Attributes:
        problems: What is wrong with the hooks that were added.
    """

    def __init__(self, config: Config, points: PointTable) -> None:
        self.config = config
        self.points = points
        self.problems: list[Problem] = []
        self._added: list[tuple[object, list[Hook]]] = []
        self._keys: list[tuple[Hook, Key]] = []

    def add(self, key: Key, part: object, made: object) -> list[Hook]:
        """Add a hook, ours or a foreign one; return it as hooks of ours."""
        try:
            ours = adapt(made)
            every = part.settings.get("every") if isinstance(part, Part) else None
            # Of our own hooks, `every` was set when they were built.
            if every is not None and made not in ours:
                _limit(ours, every, type(made).__name__)
            declare_points(ours, self.points)
            for hook in ours:
                check_hook(hook, self.points)
        except HookError as error:
            self._report(key, str(error))
            return []
        self._added.append((made, ours))
        self._keys += [(hook, key) for hook in ours]
        return ours

    def all(self) -> list[Hook]:
        """Return the hooks added so far; two with the same name are a problem."""
        hooks = numbered(self._added)
        names: set[str] = set()
        for hook, key in self._keys:
            if hook.name in names:
                self._report(
                    key,
                    f"another hook is named '{hook.name}', too: give this one a name of its own, "
                    f"{{type: {type(hook).__name__}, name: {hook.name}_2, ...}}.",
                )
            names.add(hook.name)
        return hooks

    def key_of(self, name: str) -> Key | None:
        """Return the key of the hook with a name."""
        return next((key for hook, key in self._keys if hook.name == name), None)

    def _report(self, key: Key, message: str) -> None:
        self.problems.append(Problem(f"{spell(key)}: {message}", self.config.where(key)))


def _limit(hooks: list[Hook], every: object, kind: str) -> None:
    """Set the interval of a foreign hook, which has no argument of its own for ours."""
    for hook in hooks:
        # Of several hooks it would not be clear which one is meant.
        if hook.every is not None or len(hooks) > 1:
            raise HookError(f"'every' cannot limit {kind}: it has arguments of its own for that.")
        hook.every = every  # type: ignore[assignment]
