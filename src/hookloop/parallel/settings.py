"""``parallel=``: how the ranks of a run work together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast, get_args

from hookloop.errors import HookloopError, nearest
from hookloop.every import Every

Plan = str | Callable[[Any, Any], object]
"""What splits a model over the ranks of a mesh, or its name."""

OTHER_MESHES = {
    "context": (
        "would cut each sequence over the ranks, which torch can do on GPUs only: its attention on "
        "the CPU has no rule for parts of a sequence, so nothing here could be tried. A step of "
        "your own can use torch's context_parallel."
    ),
    "pipeline": (
        "would give each rank some of the layers. A schedule of torch's runs forward and backward "
        "of all microbatches in one call, in which no hook sees a microbatch; and each rank has "
        "another part of the model, of the state and of the loss. Use {'data': ..., 'tensor': ...} "
        "or {'replicate': ..., 'shard': ...}."
    ),
}
"""Meshes of torch's that are not offered, and why."""

Strategy = Literal["auto", "none", "replicated", "sharded"]

TIMEOUT = 300.0
"""Seconds for which one rank may keep the others waiting."""

PATIENCE = 900.0
"""Seconds to wait for the launchers of the other nodes."""

GROW_AFTER = 60.0
"""Seconds for which fewer ranks train, before as many as possible are started again."""


@dataclass(frozen=True)
class Parallel:
    """How the ranks of a run work together; a single process needs none of it.

    Attributes:
        strategy: ``"replicated"``: each rank has the whole model; ``"sharded"``: each has a part
            of every parameter; ``"auto"`` is replicated; ``"none"`` rejects more than one rank.
        unused_parameters: Whether a loss may leave parameters out. By default it may where there
            is a ``step=`` or several updates, in which branches are common.
        logical: Into how many logical ranks a run is cut, whatever the number of processes, so that
            its bits do not depend on that number; None leaves that out.
        timeout: How long one rank may keep the others waiting: ``"5 min"``, or seconds.
        mesh: Of a sharded run: ``{"replicate": 2, "shard": 4}`` keeps two copies of the shards,
            one on each group of four ranks. By default there is one. ``{"data": 2, "tensor": 4}``
            cuts batches for two groups, each of which splits the layers over four ranks.
        plan: How the layers are split: a function of the model and of torch's mesh of the ranks
            that split it, its path, or the name of a plan that is there already.
        shard: The classes of modules that are gathered one at a time; by default the entries of
            each ModuleList.
        precision: In which numbers a sharded run computes: ``{"param": "bf16", "reduce": "fp32"}``.
        offload: Whether shards are kept in the memory of the host.
        activation_checkpointing: Whether activations are computed again in the backward.

    >>> Parallel.parse("replicated").timeout
    300.0
    >>> Parallel.parse({"timeout": "1 min"}).timeout
    60.0
    """

    strategy: Strategy = "auto"
    unused_parameters: bool | None = None
    logical: int | None = None
    timeout: float = TIMEOUT
    mesh: Mapping[str, int] | None = None
    plan: Plan | None = None
    shard: tuple[str, ...] = ()
    precision: Mapping[str, str] = field(default_factory=dict)
    offload: bool = False
    activation_checkpointing: bool = False

    @property
    def is_sharded(self) -> bool:
        """Whether each rank has a part of each parameter."""
        return self.strategy == "sharded"

    @property
    def tensor(self) -> int:
        """Over how many ranks layers are split."""
        return 1 if self.mesh is None else self.mesh.get("tensor", 1)

    @classmethod
    def parse(cls, given: Parallel | str | Mapping[str, object] | None) -> Parallel:
        """Read the name of a strategy, or a mapping of settings."""
        if given is None or isinstance(given, Parallel):
            return given or cls()
        settings = {"strategy": given} if isinstance(given, str) else given
        if not isinstance(settings, Mapping):
            raise _problem(f"{given!r} must be the name of a strategy, or a mapping of settings.")
        names = [field.name for field in fields(cls)]
        for name in settings:
            if name not in names:
                raise _problem(
                    f"there is no setting '{name}'.{nearest(str(name), names)} "
                    f"There are: {', '.join(names)}."
                )
        parsed = {name: _READ[name](value) for name, value in settings.items() if name in _READ}
        found = cls(**{**settings, **parsed})  # type: ignore[arg-type]
        if (found.mesh is not None and "tensor" in found.mesh) != (found.plan is not None):
            raise _problem(
                "plan says how layers are split over the ranks of mesh: {data: ..., tensor: ...}: "
                "write both, or none."
            )
        if found.plan is not None and found.strategy == "auto":
            return replace(found, strategy="sharded")
        return found


def _problem(message: str) -> HookloopError:
    return HookloopError(f"parallel: {message}", argument="parallel")


def _strategy(value: object) -> Strategy:
    names = get_args(Strategy)
    if value not in names:
        raise _problem(
            f"{value!r} is not a strategy.{nearest(str(value), names)} Write {', '.join(names)}."
        )
    return cast("Strategy", value)


def _switch(value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise _problem(f"unused_parameters is {value!r}: write true or false.")
    return value


def _logical(value: object) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if value is not None and not is_number:
        raise _problem(f"logical is {value!r}: write how many logical ranks there are.")
    return cast("int | None", value)


def read_seconds(value: object) -> float | None:
    """Return how many seconds a number or a text such as "5 min" means; None if it is not a time.

    >>> read_seconds("5 min"), read_seconds(20), read_seconds("5 epochs")
    (300.0, 20.0, None)
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    if isinstance(value, str):
        interval = Every.parse(value)
        if interval.unit == "seconds":
            return float(interval.count)
    return None


def _seconds(value: object) -> float:
    seconds = read_seconds(value)
    if seconds is None:
        raise _problem(f"timeout is {value!r}: write seconds, or a time such as '5 min'.")
    return seconds


def _mesh(value: object) -> Mapping[str, int] | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        for outer, inner in (("replicate", "shard"), ("data", "tensor")):
            if inner in value and set(value) <= {outer, inner}:
                sizes = {outer: value.get(outer, 1), inner: value[inner]}
                if all(type(one) is int and one > 0 for one in sizes.values()):
                    return sizes
        if others := sorted(str(name) for name in set(value) & set(OTHER_MESHES)):
            raise _problem(f"mesh: '{others[0]}' {OTHER_MESHES[others[0]]}")
    raise _problem(
        f"mesh is {value!r}: write it as {{'replicate': 2, 'shard': 4}}, or as "
        "{'data': 2, 'tensor': 4} with a plan."
    )


def _plan(value: object) -> Plan | None:
    if value is None or callable(value) or isinstance(value, str):
        return cast("Plan | None", value)
    raise _problem(f"plan is {value!r}: write a function, or its path: my_project.parallelize.")


def _classes(value: object) -> tuple[str, ...]:
    values = [value] if isinstance(value, str | type) else value
    if not isinstance(values, list | tuple):
        raise _problem(f"shard is {value!r}: write a list of class names.")
    return tuple(
        one if isinstance(one, str) else f"{one.__module__}.{one.__qualname__}" for one in values
    )


def _precision(value: object) -> Mapping[str, str]:
    kinds, parts = ("fp32", "bf16", "fp16"), ("param", "reduce")
    if not isinstance(value, Mapping) or not set(value) <= set(parts):
        raise _problem(f"precision is {value!r}: write it as {{'param': 'bf16'}}.")
    for kind in value.values():
        if kind not in kinds:
            raise _problem(f"precision: {kind!r} must be one of {', '.join(kinds)}.")
    return dict(value)


_READ: dict[str, Callable[[object], object]] = {
    "strategy": _strategy,
    "unused_parameters": _switch,
    "logical": _logical,
    "timeout": _seconds,
    "mesh": _mesh,
    "plan": _plan,
    "shard": _classes,
    "precision": _precision,
    "offload": bool,
    "activation_checkpointing": bool,
}
