"""``mmengine.registry.build_functions``: build objects from the dicts of a config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from hookloop_mmengine.registry.registry import Registry


def build_from_cfg(
    cfg: Mapping[str, object], registry: Registry, default_args: Mapping[str, object] | None = None
) -> object:
    """Build the object of a config dict: ``type`` names it, the rest are its arguments."""
    # Not `isinstance(..., Mapping)`: a Config only behaves like one.
    if not hasattr(cfg, "keys"):
        raise TypeError(f"cfg should be a dict, ConfigDict or Config, but got {type(cfg)}")
    arguments = {**(default_args or {}), **cfg}
    if "type" not in arguments:
        raise KeyError(f'`cfg` or `default_args` must contain the key "type", but got {cfg}')
    # `_scope_` chooses the registry and is not an argument of the class.
    scope = cast("str | None", arguments.pop("_scope_", None))
    kind = arguments.pop("type")
    # The scope lasts until the object is made: what it builds inside belongs to its project.
    with registry.switch_scope_and_registry(scope):
        factory = registry.require(kind) if isinstance(kind, str) else kind
        if not callable(factory):
            raise TypeError(f"type must be a str or valid type, but got {type(kind)}")
        # A visualizer, for example, is found again by its name, so it must not be made twice.
        get_instance = getattr(factory, "get_instance", None)
        if "name" in arguments and callable(get_instance):
            return get_instance(**arguments)
        return factory(**arguments)


def build_runner_from_cfg(
    cfg: Mapping[str, object], registry: Registry | None = None, **_: object
) -> object:
    """Build a runner of the class that ``runner_type`` names; `Runner` by default."""
    from hookloop_mmengine.runner import Runner

    # Not `type`: the whole config is the argument of a runner.
    kind = cast("str", cfg.get("runner_type", "Runner"))
    runner_class = registry.require(kind) if registry is not None else Runner
    return cast("type[Runner]", runner_class).from_cfg(cfg)


def build_model_from_cfg(
    cfg: object, registry: Registry, default_args: Mapping[str, object] | None = None
) -> object:
    """Build a model; a list of configs makes a sequential model."""
    if isinstance(cfg, list):
        from torch.nn import Module

        from hookloop_mmengine.model import Sequential

        built = [build_from_cfg(entry, registry, default_args) for entry in cfg]
        return Sequential(*cast("list[Module]", built))
    return build_from_cfg(cast("Mapping[str, object]", cfg), registry, default_args)


def build_scheduler_from_cfg(
    cfg: Mapping[str, object], registry: Registry, default_args: Mapping[str, object] | None = None
) -> object:
    """Build a parameter scheduler; ``convert_to_iter_based`` turns its epochs into iterations."""
    arguments = {**(default_args or {}), **cfg}
    # Not an argument of the schedulers themselves.
    epoch_length = arguments.pop("epoch_length", None)
    if arguments.pop("convert_to_iter_based", False):
        kind = arguments.pop("type")
        scheduler_class = registry.require(kind) if isinstance(kind, str) else kind
        return scheduler_class.build_iter_from_epoch(epoch_length=epoch_length, **arguments)  # type: ignore[attr-defined]
    return build_from_cfg(arguments, registry)
