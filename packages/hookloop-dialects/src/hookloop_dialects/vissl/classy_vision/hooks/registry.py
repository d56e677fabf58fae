"""`register_hook` and `build_hook`: hooks by their names in ClassyVision's configs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any, TypeVar, cast

from hookloop.dialects import import_name
from hookloop.errors import nearest
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import ClassyHook

Kind = TypeVar("Kind", bound=type)

_HOME = "hookloop_dialects.vissl.classy_vision.hooks"

BUILT_IN = {
    "checkpoint": f"{_HOME}.checkpoint_hook:CheckpointHook",
    "ema_model_weights": f"{_HOME}.rows:ExponentialMovingAverageModelHook",
    "loss_lr_meter_logging": f"{_HOME}.logging_hooks:LossLrMeterLoggingHook",
    "model_complexity": f"{_HOME}.rows:ModelComplexityHook",
    "model_tensorboard": f"{_HOME}.board_hooks:ModelTensorboardHook",
    "output_csv": f"{_HOME}.logging_hooks:OutputCSVHook",
    "precise_bn": f"{_HOME}.rows:PreciseBatchNormHook",
    "profiler": f"{_HOME}.rows:ProfilerHook",
    "progress_bar": f"{_HOME}.rows:ProgressBarHook",
    "tensorboard_plot": f"{_HOME}.board_hooks:TensorboardPlotHook",
    "torchscript": f"{_HOME}.rows:TorchscriptHook",
    "visdom": f"{_HOME}.board_hooks:VisdomHook",
}
"""ClassyVision's own hooks by their registered names."""


class HookRegistry(dict[str, type]):
    """The hook classes that files have registered, by name; a config may name them too."""

    @property
    def classes(self) -> dict[str, type]:
        """The classes by name."""
        return self


HOOK_REGISTRY = HookRegistry()


def register_hook(name: str, bypass_checks: bool = False) -> Callable[[Kind], Kind]:
    """Register a hook class for configs.

    Args:
        name: The name in configs.
        bypass_checks: Whether to replace an earlier class of that name.
    """

    def register(kind: Kind) -> Kind:
        if not bypass_checks:
            # A file that is loaded twice registers its classes twice.
            if name in HOOK_REGISTRY and HOOK_REGISTRY[name].__qualname__ != kind.__qualname__:
                raise ValueError(f"A hook is registered as '{name}' already.")
            if not issubclass(kind, ClassyHook):
                raise ValueError(f"{kind.__name__} is not a ClassyHook.")
        HOOK_REGISTRY[name] = kind
        return kind

    return register


def build_hook(config: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a hook of any kind
    """Make a hook from ``{"name": "checkpoint", ...}``."""
    # A deep copy, so that a hook can change its settings without changing the config.
    settings = dict(deepcopy(config))
    name = settings.pop("name", None)
    names = [*HOOK_REGISTRY, *BUILT_IN]
    assert name in names, f"no hook is registered as '{name}'.{nearest(str(name), names)}"
    kind = HOOK_REGISTRY.get(name)
    if kind is None:
        kind = cast("type", import_name(BUILT_IN[name]))
    # The rows that native hooks stand for have no from_config.
    make = getattr(kind, "from_config", None)
    return make(settings) if callable(make) else kind(**settings)


def build_hooks(configs: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Make the hooks that a config lists."""
    return [build_hook(config) for config in configs]
