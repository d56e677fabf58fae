"""Read the optimizers and schedules of a config: one of each, or several by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from hookloop.config.parts.part import TYPE, Part, PartReader, is_object
from hookloop.config.parts.signature import Unknown
from hookloop.config.registry import OPTIMIZERS, SCHEDULES
from hookloop.config.tree import Key
from hookloop.errors import nearest
from hookloop.every import Every

ONLY = ""
"""The name under which a single optimizer or schedule is kept."""


@dataclass
class Group:
    """A parameter group: which parameters, and the options for them.

    With ``decay`` it becomes one group per layer.
    """

    key: Key
    match: list[str] = field(default_factory=list)
    norms: bool = False
    decay: float | None = None
    options: dict[str, object] = field(default_factory=dict)


@dataclass
class OptimizerPart:
    """An optimizer, with the patterns of the parameters that it gets."""

    part: Part
    params: list[str] | None = None
    groups: list[Group] = field(default_factory=list)


def read_optimizers(reader: PartReader, key: Key, value: object) -> dict[str, object]:
    """Read one optimizer, kept under the name `ONLY`, or a mapping from names."""
    if value is None:
        return {}
    if not is_named(value):
        return {ONLY: _optimizer(reader, key, value)}
    return {
        name: _optimizer(reader, (*key, name), item)
        for name, item in cast("dict[str, object]", value).items()
        if not reader.is_removed((*key, name), item, cast("dict[str, object]", value))
    }


def read_schedules(
    reader: PartReader, key: Key, value: object, optimizers: dict[str, object]
) -> dict[str, object]:
    """Read one schedule or a mapping from names of optimizers."""
    if value is None:
        return {}
    if not is_named(value):
        if len(optimizers) > 1:
            names = ", ".join(optimizers)
            reader.report(key, f"give the optimizer that it drives, as a mapping from {names}.")
        return {ONLY: _schedule(reader, key, value)}
    schedules: dict[str, object] = {}
    for name, item in cast("dict[str, object]", value).items():
        if name not in optimizers:
            hint = nearest(name, optimizers)
            reader.report((*key, name), f"no optimizer is named '{name}'.{hint}")
        if item is not None:
            schedules[name] = _schedule(reader, (*key, name), item)
    return schedules


def is_named(value: object) -> bool:
    """Return whether a node is a mapping from names to descriptions, not a description."""
    if not isinstance(value, dict) or TYPE in value or not value:
        return False
    # A number among the values shows a description whose type is missing, such as {lr: 0.1}.
    return all(
        item is None or isinstance(item, dict | str) or is_object(item) for item in value.values()
    )


def _optimizer(reader: PartReader, key: Key, value: object) -> object:
    if not isinstance(value, dict | str | type):
        return value
    written = reader.describe(key, value)
    if written is None:
        return None
    # These are patterns in a config; the optimizer itself gets the parameters that they match.
    patterns = written.arguments.pop("params", None)
    groups = written.arguments.pop("groups", None)
    part = reader.read(written, OPTIMIZERS, supplied=("params", "model"))
    if part is None:
        return None
    if not part.supplied and not part.signature.is_open:
        takes = "it has to take 'params' or 'model', which it is given."
        reader.report(key, f"{part.signature.name} cannot be an optimizer here: {takes}")
    read = OptimizerPart(part)
    if patterns is not None:
        read.params = _patterns(reader, (*key, "params"), patterns)
    if groups is not None:
        read.groups = _groups(reader, (*key, "groups"), groups, part)
    return read


def _groups(reader: PartReader, key: Key, value: object, part: Part) -> list[Group]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        reader.report(key, "expected a list of mappings, each with 'match' or 'norms'.")
        return []
    return [_group(reader, (*key, index), item, part) for index, item in enumerate(value)]


def _group(reader: PartReader, key: Key, value: dict[str, object], part: Part) -> Group:
    group = Group(key)
    for name, item in value.items():
        at = (*key, name)
        unknown = part.signature.unknown(name)
        if name == "match":
            group.match = _patterns(reader, at, item)
        elif name == "norms":
            group.norms = bool(reader.plain(at, item, bool))
        elif name == "decay" and "decay" not in part.signature.annotations:
            group.decay = _decay(reader, at, item)
        elif name == "name":
            group.options[name] = item
        elif unknown:
            reader.report(at, unknown)
        else:
            annotation = part.signature.annotations.get(name, Unknown)
            group.options[name] = reader.plain(at, item, annotation)
    if not group.match and not group.norms:
        reader.report(key, "a group names its parameters: match: '*.bias', or norms: true.")
    return group


def _decay(reader: PartReader, key: Key, value: object) -> float | None:
    read = reader.plain(key, value, float)
    if isinstance(read, float | int) and not 0 < read <= 1:
        reader.report(key, f"decay is a share of the rate above 0 and up to 1, not {read:g}.")
        return None
    return float(read) if isinstance(read, float | int) else None


def _patterns(reader: PartReader, key: Key, value: object) -> list[str]:
    read = reader.plain(key, value, str | list[str])
    if isinstance(read, str):
        return [read]
    return [item for item in read if isinstance(item, str)] if isinstance(read, list) else []


def _schedule(reader: PartReader, key: Key, value: object) -> object:
    if not isinstance(value, dict | str | type):
        return value
    written = reader.describe(key, value)
    if written is None:
        return None
    settings = {"every": Every | int | str, "metric": str | None}
    part = reader.read(written, SCHEDULES, supplied=("optimizer",), settings=settings)
    if part is None:
        return None
    # Its `step` takes the metric, so it could not be stepped without one.
    if part.signature.name == "ReduceLROnPlateau" and part.settings.get("metric") is None:
        reader.report(key, "ReduceLROnPlateau needs 'metric', for example metric: val/loss.")
    _reject_time(reader, (*key, "every"), part.settings.get("every"))
    return part


def _reject_time(reader: PartReader, key: Key, every: object) -> None:
    try:
        parsed = Every.parse(every) if isinstance(every, str) else None
    except ValueError:  # `read` has reported it with the other settings.
        return
    if parsed is not None and parsed.unit not in ("iters", "epochs"):
        what = "time" if parsed.unit == "seconds" else parsed.unit
        reader.report(key, f"a schedule steps by iterations or epochs, not by {what}.")
