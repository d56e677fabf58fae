"""`register_meter` and `build_meter`: meters by their names in configs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from hookloop.dialects import import_name
from hookloop.errors import HookError, nearest
from hookloop_dialects.vissl.classy_vision.meters.classy_meter import ClassyMeter

Kind = TypeVar("Kind", bound=type)

_CLASSY = "hookloop_dialects.vissl.classy_vision.meters"
_SSL = "hookloop_dialects.vissl.meters"

BUILT_IN = {
    "accuracy": f"{_CLASSY}.accuracy_meter:AccuracyMeter",
    "precision_at_k": f"{_CLASSY}.precision_meter:PrecisionAtKMeter",
    "recall_at_k": f"{_CLASSY}.recall_meter:RecallAtKMeter",
    "accuracy_list_meter": f"{_SSL}.accuracy_list_meter:AccuracyListMeter",
    "precision_at_k_list_meter": f"{_SSL}.precision_at_k_list_meter:PrecisionAtKListMeter",
    "recall_at_k_list_meter": f"{_SSL}.recall_at_k_list_meter:RecallAtKListMeter",
}
"""The meters of both systems by their registered names."""

METER_REGISTRY: dict[str, type] = {}


def register_meter(name: str, bypass_checks: bool = False) -> Callable[[Kind], Kind]:
    """Register a meter class for configs.

    Args:
        name: The name in configs.
        bypass_checks: Whether to replace an earlier class of that name.
    """

    def register(kind: Kind) -> Kind:
        if not bypass_checks:
            earlier = METER_REGISTRY.get(name, kind)
            if earlier.__qualname__ != kind.__qualname__:
                raise ValueError(f"A meter is registered as '{name}' already.")
            if not issubclass(kind, ClassyMeter):
                raise ValueError(f"{kind.__name__} is not a ClassyMeter.")
        METER_REGISTRY[name] = kind
        return kind

    return register


def build_meter(config: Mapping[str, Any]) -> ClassyMeter:
    """Make a meter from ``{"name": "accuracy", ...}``."""
    settings = dict(config)
    name = str(settings.pop("name", ""))
    names = [*METER_REGISTRY, *BUILT_IN]
    if name not in names:
        raise HookError(
            f"No meter is registered as '{name}'.{nearest(name, names)} A metric that is not "
            "offered as a meter can be given to the Trainer as metrics=."
        )
    kind = (
        METER_REGISTRY[name]
        if name in METER_REGISTRY
        else cast("type", import_name(BUILT_IN[name]))
    )
    return cast("ClassyMeter", kind.from_config(settings))  # type: ignore[attr-defined]


def build_meters(config: Mapping[str, Mapping[str, Any]]) -> list[ClassyMeter]:
    """Make meters from their settings by name."""
    return [build_meter({"name": name, **settings}) for name, settings in config.items()]


def meters_of(config: Mapping[str, Any]) -> list[ClassyMeter]:
    """Make the meters of a run's config: VISSL's ``METERS``, or ClassyVision's ``meters``."""
    section = config.get("METERS") or {}
    name = section.get("name")
    names = section.get("names") or ([name] if name else [])
    if names:
        return [build_meter({"name": one, **section.get(one, {})}) for one in names]
    meters = config.get("meters") or {}
    return build_meters(meters) if isinstance(meters, Mapping) else [*map(build_meter, meters)]
