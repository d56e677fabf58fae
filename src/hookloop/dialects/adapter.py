"""`Adapter`: a foreign hook as a native one, and `Facade`: the runner that the hook sees.

A dialect lists `Mount`s: which foreign method is called at which of our points, and how. Only the
methods that a foreign hook overrides are attached, so the others cost nothing.

    foreign hook -> adapt -> Adapter(mounts) -> plan
    loop -> point -> Mount's call -> foreign method(facade, ...)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from hookloop.arguments import snake_case
from hookloop.beside import is_own
from hookloop.engine.hook import SCHEDULES, Call, Hook, OnError, Priority
from hookloop.errors import HookError, nearest
from hookloop.runs.run_log import forward_logger

if TYPE_CHECKING:
    from hookloop.engine.run import Run

Method = Callable[..., object]


class ForeignAttributeError(HookError, AttributeError):
    """Raised for an attribute that a facade lacks; an `AttributeError`, so ``hasattr`` works."""


class Facade:
    """The run as the hooks of one foreign system see it; one per run and dialect.

    A dialect's facade offers that system's attributes as properties. Hooks may set attributes of
    their own on it, as they do on the real one.

    Args:
        run: The run.

    Attributes:
        role: The foreign system's word for it: ``runner``, ``task``, ``trainer``.
        hints: Attributes of the real object that are not offered, and what to use instead.
        loggers: Loggers that the system's hooks use; the run shows and logs their messages.
        hook: Name of the hook that is being called, for messages.
    """

    role: str = "runner"
    hints: ClassVar[Mapping[str, str]] = {}
    loggers: ClassVar[tuple[str, ...]] = ()

    def __init__(self, run: Run) -> None:
        self.run = run
        self.hook = ""

    @classmethod
    def logger_names(cls) -> tuple[str, ...]:
        """Return `loggers`; a system whose object has another ``loggers`` overrides this."""
        return cls.loggers

    @property
    def adapters(self) -> list[Adapter]:
        """The adapted hooks of this dialect in the run, in their order."""
        return [
            hook for hook in self.run.hooks if isinstance(hook, Adapter) and hook.facade is self
        ]

    def __getattr__(self, name: str) -> object:
        # copy and pickle probe for such names and expect a plain error.
        if name.startswith("__"):
            raise AttributeError(name)
        hint = self.hints.get(name)
        # What every facade has, and what is only explained, is not an attribute of the real object.
        others = {*dir(Facade), *self.hints}
        offered = [n for n in dir(type(self)) if not n.startswith("_") and n not in others]
        advice = f" Use {hint} instead." if hint else nearest(name, offered)
        otherwise = (
            f" If a trainer of your project sets it, set {self.role}.{name} in a hook that comes "
            "before this one. A native hook finds the run in run.<name>."
        )
        # Through __dict__: before __init__ has set `hook`, self.hook would end up here again.
        hook = self.__dict__.get("hook", "")
        raise ForeignAttributeError(
            f"The hook '{hook}' asks for {self.role}.{name}, which hookloop does not offer."
            f"{advice or otherwise} "
            f"Available: {', '.join(offered)}."
        )


@dataclass(frozen=True)
class Mount:
    """Where and how a foreign method is called.

    Attributes:
        point: Our mount point.
        method: Name of the foreign method.
        bind: Builds the call for our point: ``bind(method, adapter)`` returns a function of the
            run and the point's own arguments, which calls ``method`` with ``adapter.facade``.
        positional: Number of arguments that the foreign system passes by position.
        keywords: Names of the arguments that it passes by keyword.
    """

    point: str
    method: str
    bind: Callable[[Method, Adapter], Call]
    positional: int = 1
    keywords: tuple[str, ...] = ()


class Adapter(Hook):
    """A foreign hook at our mount points.

    Args:
        foreign: The hook as its author wrote it.
        mounts: Where its methods are called; a point may be listed several times.
        facade: Makes the facade of a run; called once per run and dialect.
        base: The foreign base class; its methods do nothing, so they are not called.
        priority: On our scale; the dialect translates.
    """

    # What foreign systems call it.
    requests_by = (*Hook.requests_by, "stop_training", "save_checkpoint")

    def __init__(
        self,
        foreign: object,
        mounts: Iterable[Mount],
        *,
        facade: Callable[[Run], Facade],
        base: type | None = None,
        priority: Priority | int | str = Priority.NORMAL,
    ) -> None:
        self.foreign = self.stands_for = foreign
        self.name = _instance_text(foreign, "name") or snake_case(type(foreign).__name__)
        self.priority = priority
        self.on_error = cast("OnError", _instance_text(foreign, "on_error") or "raise")
        self.ends_training = bool(getattr(foreign, "ends_training", False))
        if getattr(foreign, "steps_schedules", False):
            self.owns = (SCHEDULES,)
        self.takes_part_in_training = bool(getattr(foreign, "takes_part_in_training", False))
        # The hooks of our own catalogues draw no random numbers. Of any other hook we cannot know
        # it, so its draws are kept apart from the training's.
        draws = not is_own(type(foreign))
        self.draws_random_numbers = bool(vars(type(foreign)).get("draws_random_numbers", draws))
        self.writes = _names(getattr(foreign, "writes", None))
        self._make_facade = facade
        # Set in before_run. An Optional type would demand a check in every call of every iteration.
        self.facade: Facade = cast("Facade", None)
        self._has_begun = False
        self._at_start: list[Call] = []
        self._attached = False
        # Last, because a mount's `bind` may read the attributes above.
        for mount in mounts:
            method = overridden(foreign, mount.method, base)
            if method is not None:
                check_signature(foreign, method, mount)
                self.attach(mount.point, mount.bind(method, self))

    @property
    def acts(self) -> bool:
        """Whether any method of the foreign hook is called."""
        return bool(self._at_start or self._attached)

    def attach(self, point: str, call: Call) -> None:
        """Add a call at a point, after those that are there already."""
        self._attached = True
        # before_run is a method of this class, which must bind the facade before anything else.
        if point == "before_run":
            self._at_start.append(call)
            return
        if point in ("after_run", "on_exception"):
            call = self._after_any_start(call, skips=point == "after_run")
        # An instance attribute, not a method: the plan calls it directly, one frame less per call.
        earlier = self.__dict__.get(point)
        setattr(self, point, call if earlier is None else _chain(earlier, call))

    def before_run(self, run: Run) -> None:
        self.bind_facade(run)
        for call in self._at_start:
            call(run)

    def _after_any_start(self, call: Call, *, skips: bool) -> Call:
        """Guard a call that comes even if an earlier hook failed before this one was started."""

        def guarded(run: Run, *args: object) -> None:
            has_begun = self._has_begun
            if not has_begun and skips:
                return
            if not has_begun:
                self.bind_facade(run)
            call(run, *args)
            self._has_begun = has_begun  # The end of what never began stays left out.

        return guarded

    def bind_facade(self, run: Run) -> None:
        """Get the facade that the hooks of this dialect share in a run."""
        self._has_begun = True
        # A string, since the engine stores facades without knowing their classes.
        key = f"{self._make_facade.__module__}.{self._make_facade.__qualname__}"
        if key not in run._internals.shared:
            run._internals.shared[key] = self._make_facade(run)
        self.facade = cast("Facade", run._internals.shared[key])
        for name in self.facade.logger_names():
            forward_logger(name, prints=run.world.is_main)

    def state_dict(self) -> dict[str, object]:
        save = getattr(self.foreign, "state_dict", None)
        return cast("dict[str, object]", save()) if callable(save) else {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        load = getattr(self.foreign, "load_state_dict", None)
        if callable(load) and state:
            load(state)


class Catalogued:
    """A foreign hook of a catalogue whose work is done by native hooks."""

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hooks that do the work."""
        raise NotImplementedError


def overridden(foreign: object, name: str, base: type | None = None) -> Method | None:
    """Return a method of a foreign hook unless it is the do-nothing one of its base class."""
    method = getattr(foreign, name, None)
    if not callable(method):
        return None
    function = getattr(method, "__func__", method)
    return None if base is not None and function is getattr(base, name, None) else method


def base_of(foreign: object, bases: Iterable[tuple[str, str]]) -> type | None:
    """Return the foreign system's own base class among the ancestors of a hook, or None."""
    for kind in type(foreign).__mro__:
        for package, name in bases:
            # With the dot, "knots" does not match a package "knots_extras".
            if kind.__name__ == name and f"{kind.__module__}.".startswith(f"{package}."):
                return kind
    return None


def check_signature(foreign: object, method: Method, mount: Mount) -> None:
    """Reject a method that its own system could not call either; there it would fail later."""
    try:
        signature = inspect.signature(method)
    except ValueError:  # Some builtins have no signature. The first call will show the problem.
        return
    try:
        signature.bind(*[None] * mount.positional, **dict.fromkeys(mount.keywords))
    except TypeError as error:
        shown = [*["..."] * mount.positional, *(f"{name}=..." for name in mount.keywords)]
        raise HookError(
            f"{type(foreign).__name__}.{mount.method} has the signature {signature}, but it is "
            f"called as {mount.method}({', '.join(shown)}): {error}."
        ) from error


def _chain(first: Call, second: Call) -> Call:
    def call(run: Run, *args: object) -> None:
        first(run, *args)
        second(run, *args)

    return call


def _names(declared: object) -> tuple[str, ...]:
    """Return the metrics that a foreign hook declares as a native one would."""
    # In a foreign class the word may mean anything, a method for example.
    if not isinstance(declared, list | tuple) or not all(isinstance(one, str) for one in declared):
        return ()
    return tuple(declared)


def _instance_text(foreign: object, attribute: str) -> str | None:
    """Return a text that a config set on this hook."""
    # Only on the instance. On a class such a name may mean something else, a method for example.
    value = getattr(foreign, "__dict__", {}).get(attribute)
    return value if isinstance(value, str) else None
