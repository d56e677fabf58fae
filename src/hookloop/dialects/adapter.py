"""`Adapter`: one foreign hook as a native one, and `Facade`: what it takes for its own runner.

A dialect lists `Mount`s: at which of our points which foreign method is called, and how. Only the
methods that a foreign hook really overrides are attached, so the others cost nothing.

    foreign hook -> adapt -> Adapter(mounts) -> plan
    loop -> point -> Mount's call -> foreign method(facade, ...)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from hookloop.core.hook import Call, Hook, OnError, Priority, snake_case
from hookloop.errors import HookError, nearest
from hookloop.runs.run_log import forward_logger

if TYPE_CHECKING:
    from pathlib import Path

    from hookloop.core.run import Run

Method = Callable[..., object]


class ForeignAttributeError(HookError, AttributeError):
    """An attribute that a facade does not offer; as an `AttributeError`, ``hasattr`` works."""


class Facade:
    """The run as hooks of one foreign system see it; one per run and dialect.

    A dialect's facade offers that system's attributes as properties. Hooks may set attributes of
    their own on it, as they do on the real one.

    Args:
        run: The run.

    Attributes:
        role: What the foreign system calls it: ``runner``, ``task``, ``trainer``.
        hints: Attributes of the real one that are not offered, and what to use instead.
        loggers: Names of the loggers that its hooks use; their warnings belong to the run's log.
        hook: Name of the hook that is being called, for messages.
    """

    role: str = "runner"
    hints: ClassVar[Mapping[str, str]] = {}
    loggers: ClassVar[tuple[str, ...]] = ()

    def __init__(self, run: Run) -> None:
        self.run = run
        self.hook = ""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        hint = self.hints.get(name)
        offered = [known for known in dir(type(self)) if not known.startswith("_")]
        way = f" Use {hint} instead." if hint else nearest(name, offered)
        raise ForeignAttributeError(
            f"The hook '{self.__dict__.get('hook', '')}' asks for {self.role}.{name}, which "
            f"hookloop does not offer.{way or ' A native hook finds the run in run.<name>.'} "
            f"Offered are: {', '.join(offered)}."
        )


@dataclass(frozen=True)
class Mount:
    """Where and how a foreign method is called.

    Attributes:
        point: Our mount point.
        method: Name of the foreign method.
        bind: Makes the call of our point: ``bind(method, adapter)`` returns a function of the run
            and the point's own arguments, which calls ``method`` with ``adapter.facade``.
        positional: How many arguments the foreign system passes by position.
        keywords: Names of those that it passes by keyword.
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
        mounts: Where its methods go; for one point several may be listed.
        facade: Makes what the hook sees of a run; made once per run and dialect.
        base: The class whose methods do nothing, so that they need not be called; by default
            those of `dialect` are looked for by name.
        priority: In our scale; a dialect translates.
    """

    def __init__(
        self,
        foreign: object,
        mounts: Iterable[Mount],
        *,
        facade: Callable[[Run], Facade],
        base: type | None = None,
        priority: Priority | int | str = Priority.NORMAL,
    ) -> None:
        self.foreign = foreign
        self.name = _instance_text(foreign, "name") or snake_case(type(foreign).__name__)
        self.priority = priority
        self.on_error = cast("OnError", _instance_text(foreign, "on_error") or "raise")
        self.ends_training = bool(getattr(foreign, "ends_training", False))
        self.steps_schedules = bool(getattr(foreign, "steps_schedules", False))
        self.takes_part_in_training = bool(getattr(foreign, "takes_part_in_training", False))
        # Those that we wrote ourselves draw nothing.
        draws = not type(foreign).__module__.startswith("hookloop.")
        self.draws_random_numbers = bool(vars(type(foreign)).get("draws_random_numbers", draws))
        self._make_facade = facade
        self.facade: Facade = cast("Facade", None)  # There is one from before_run on.
        self._at_start: list[Call] = []
        self._attached = False
        for mount in mounts:
            method = overridden(foreign, mount.method, base)
            if method is not None:
                check_signature(foreign, method, mount)
                self.attach(mount.point, mount.bind(method, self))

    @property
    def acts(self) -> bool:
        """Whether the foreign hook has any method that is called."""
        return bool(self._at_start or self._attached)

    def attach(self, point: str, call: Call) -> None:
        """Make a call at a point, after those that are made there already."""
        self._attached = True
        if point == "before_run":
            self._at_start.append(call)
            return
        others = self.__dict__.get(point)
        setattr(self, point, call if others is None else _both(others, call))

    def before_run(self, run: Run) -> None:
        self.bind_facade(run)
        for call in self._at_start:
            call(run)

    def bind_facade(self, run: Run) -> None:
        """Take the facade that the hooks of this dialect share in a run."""
        key = f"{self._make_facade.__module__}.{self._make_facade.__qualname__}"
        if key not in run.facades:
            run.facades[key] = self._make_facade(run)
        self.facade = cast("Facade", run.facades[key])
        for name in self.facade.loggers:
            forward_logger(name)

    def stores(self, run_dir: Path) -> Sequence[str]:
        folder = _instance_text(self.foreign, "checkpoint_folder")  # Classy Vision's word.
        return () if folder is None else (folder,)

    def state_dict(self) -> dict[str, object]:
        save = getattr(self.foreign, "state_dict", None)
        return cast("dict[str, object]", save()) if callable(save) else {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        load = getattr(self.foreign, "load_state_dict", None)
        if callable(load) and state:
            load(state)


class Catalogued:
    """A row of a catalogue: a foreign name with its parameters, which stands for native hooks."""

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
    """Find the foreign system's own base class among the ancestors of a hook."""
    for kind in type(foreign).__mro__:
        for package, name in bases:
            if kind.__name__ == name and f"{kind.__module__}.".startswith(f"{package}."):
                return kind
    return None


def check_signature(foreign: object, method: Method, mount: Mount) -> None:
    """Refuse a method that its own system could not call either; there it would fail later."""
    try:
        signature = inspect.signature(method)
    except ValueError:  # Some builtins have none; the first call will tell.
        return
    try:
        signature.bind(*[None] * mount.positional, **dict.fromkeys(mount.keywords))
    except TypeError as error:
        shown = [*["..."] * mount.positional, *(f"{name}=..." for name in mount.keywords)]
        raise HookError(
            f"{type(foreign).__name__}.{mount.method} has the signature {signature}, but is called "
            f"as {mount.method}({', '.join(shown)}): {error}."
        ) from error


def _both(first: Call, second: Call) -> Call:
    def call(run: Run, *args: object) -> None:
        first(run, *args)
        second(run, *args)

    return call


def _instance_text(foreign: object, attribute: str) -> str | None:
    """Read what a config said of this very hook; a class attribute means something else there."""
    value = getattr(foreign, "__dict__", {}).get(attribute)
    return value if isinstance(value, str) else None
