"""``mmengine.model.weight_init``: what ``init_cfg`` names, and the functions it is made of."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import cast

from torch import Tensor, nn

from hookloop_mmengine.model.layer_init import (
    bias_init_with_prob,
    caffe2_xavier_init,
    constant_init,
    kaiming_init,
    normal_init,
    trunc_normal_,
    trunc_normal_init,
    uniform_init,
    xavier_init,
)

__all__ = [
    "BaseInit",
    "Caffe2XavierInit",
    "ConstantInit",
    "KaimingInit",
    "NormalInit",
    "PretrainedInit",
    "TruncNormalInit",
    "UniformInit",
    "XavierInit",
    "bias_init_with_prob",
    "caffe2_xavier_init",
    "constant_init",
    "initialize",
    "kaiming_init",
    "normal_init",
    "trunc_normal_",
    "trunc_normal_init",
    "uniform_init",
    "update_init_info",
    "xavier_init",
]

InitCfg = Mapping[str, object] | Sequence[Mapping[str, object]]


# --- what ``init_cfg`` names ----------------------------------------------------------------------


class BaseInit:
    """The base of initializers: they act on the layers of some names, inside a module.

    Args:
        bias: The value of the bias.
        bias_prob: The probability that the bias should mean; it wins over ``bias``.
        layer: The class names of the layers, or of their base classes.
    """

    def __init__(
        self,
        *,
        bias: float = 0,
        bias_prob: float | None = None,
        layer: str | list[str] | None = None,
    ) -> None:
        if not isinstance(bias, int | float):
            raise TypeError(f"bias must be a number, but got a {type(bias)}")
        if bias_prob is not None and not isinstance(bias_prob, float):
            raise TypeError(f"bias_prob type must be float, but got {type(bias_prob)}")
        if layer is not None and not isinstance(layer, str | list):
            raise TypeError(f"layer must be a str or a list of str, but got a {type(layer)}")
        self.wholemodule = False
        self.bias = bias if bias_prob is None else bias_init_with_prob(bias_prob)
        self.layer = [layer] if isinstance(layer, str) else layer or []

    def __call__(self, module: nn.Module) -> None:
        """Initialize the layers of a module; all of them, if ``wholemodule`` is set."""
        module.apply(self._init_if_named)
        if hasattr(module, "_params_init_info"):
            update_init_info(module, self._get_init_info())

    def _init_if_named(self, layer: nn.Module) -> None:
        names = {type(layer).__name__, *(base.__name__ for base in type(layer).__bases__)}
        if self.wholemodule or names & set(self.layer):
            self._init(layer)

    def _init(self, layer: nn.Module) -> None:
        raise NotImplementedError("Subclass BaseInit and define _init(), or __call__().")

    def _get_init_info(self) -> str:
        """Describe the initializer in the log."""
        own = {name: value for name, value in vars(self).items() if name not in _NOT_SHOWN}
        settings = ", ".join(f"{name}={value}" for name, value in own.items())
        return f"{type(self).__name__}: {settings}"


_NOT_SHOWN = ("wholemodule", "layer")


class ConstantInit(BaseInit):
    """Fill layers with a value.

    Args:
        val: The value.
        kwargs: As for `BaseInit`.
    """

    def __init__(self, val: float, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.val = val

    def _init(self, layer: nn.Module) -> None:
        constant_init(layer, self.val, self.bias)


class XavierInit(BaseInit):
    """Initialize layers as Glorot and Bengio do.

    Args:
        gain: A factor.
        distribution: ``normal`` or ``uniform``.
        kwargs: As for `BaseInit`.
    """

    def __init__(self, gain: float = 1, distribution: str = "normal", **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.gain, self.distribution = gain, distribution

    def _init(self, layer: nn.Module) -> None:
        xavier_init(layer, self.gain, self.bias, self.distribution)


class NormalInit(BaseInit):
    """Draw weights from a normal distribution.

    Args:
        mean: Its mean.
        std: Its standard deviation.
        kwargs: As for `BaseInit`.
    """

    def __init__(self, mean: float = 0, std: float = 1, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.mean, self.std = mean, std

    def _init(self, layer: nn.Module) -> None:
        normal_init(layer, self.mean, self.std, self.bias)


class TruncNormalInit(BaseInit):
    """Draw weights from a normal distribution that is cut off.

    Args:
        mean: Its mean.
        std: Its standard deviation.
        a: The least value.
        b: The greatest value.
        kwargs: As for `BaseInit`.
    """

    def __init__(
        self, mean: float = 0, std: float = 1, a: float = -2, b: float = 2, **kwargs: object
    ) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.mean, self.std, self.a, self.b = mean, std, a, b

    def _init(self, layer: nn.Module) -> None:
        trunc_normal_init(layer, self.mean, self.std, self.a, self.b, self.bias)


class UniformInit(BaseInit):
    """Draw weights from a uniform distribution.

    Args:
        a: The least value.
        b: The greatest value.
        kwargs: As for `BaseInit`.
    """

    def __init__(self, a: float = 0, b: float = 1, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.a, self.b = a, b

    def _init(self, layer: nn.Module) -> None:
        uniform_init(layer, self.a, self.b, self.bias)


class KaimingInit(BaseInit):
    """Initialize layers as He and others do.

    Args:
        a: The slope of the rectifier for negative values.
        mode: ``fan_in`` or ``fan_out``.
        nonlinearity: The function that follows the layer.
        distribution: ``normal`` or ``uniform``.
        kwargs: As for `BaseInit`.
    """

    def __init__(
        self,
        a: float = 0,
        mode: str = "fan_out",
        nonlinearity: str = "relu",
        distribution: str = "normal",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.a, self.mode, self.nonlinearity = a, mode, nonlinearity
        self.distribution = distribution

    def _init(self, layer: nn.Module) -> None:
        kaiming_init(layer, self.a, self.mode, self.nonlinearity, self.bias, self.distribution)


class Caffe2XavierInit(KaimingInit):
    """Initialize layers as Caffe2 does under the name of Xavier.

    Args:
        kwargs: As for `BaseInit`.
    """

    def __init__(self, **kwargs: object) -> None:
        super().__init__(1, "fan_in", "leaky_relu", "uniform", **kwargs)


class PretrainedInit:
    """Load weights from a checkpoint.

    Args:
        checkpoint: A file or URL.
        prefix: The part of the checkpoint that belongs to the module, for example ``backbone.``.
        map_location: The device of the weights while they are read.
    """

    def __init__(
        self, checkpoint: str, prefix: str | None = None, map_location: str = "cpu"
    ) -> None:
        self.checkpoint, self.prefix, self.map_location = checkpoint, prefix, map_location

    def __call__(self, module: nn.Module) -> None:
        """Load the weights into a module."""
        # Late, because the runner imports the models.
        from hookloop_mmengine.logging import print_log
        from hookloop_mmengine.runner.checkpoint import (
            _load_checkpoint_with_prefix,
            load_checkpoint,
            load_state_dict,
        )

        what = "model" if self.prefix is None else f"{self.prefix} in model"
        print_log(f"load {what} from: {self.checkpoint}", logger="current")
        if self.prefix is None:
            load_checkpoint(module, self.checkpoint, self.map_location)
        else:
            weights = _load_checkpoint_with_prefix(self.prefix, self.checkpoint, self.map_location)
            load_state_dict(module, weights)
        if hasattr(module, "_params_init_info"):
            update_init_info(module, self._get_init_info())

    def _get_init_info(self) -> str:
        """Describe the initializer in the log."""
        return f"{type(self).__name__}: load from {self.checkpoint}"


INITIALIZERS: dict[str, type[BaseInit | PretrainedInit]] = {
    "Constant": ConstantInit,
    "Xavier": XavierInit,
    "Normal": NormalInit,
    "TruncNormal": TruncNormalInit,
    "Uniform": UniformInit,
    "Kaiming": KaimingInit,
    "Caffe2Xavier": Caffe2XavierInit,
    "Pretrained": PretrainedInit,
}
"""The names in configs."""


# --- configs --------------------------------------------------------------------------------------


def initialize(module: nn.Module, init_cfg: InitCfg) -> None:
    """Initialize a module as a config, or a list of them, describes."""
    if not isinstance(init_cfg, dict | list):
        raise TypeError(f"init_cfg must be a dict or a list of dict, but got {type(init_cfg)}")
    for entry in [init_cfg] if isinstance(init_cfg, dict) else init_cfg:
        config = copy.deepcopy(dict(entry))
        override = config.pop("override", None)
        _apply(module, config)
        if override is not None:
            # A part that is named is initialized whole, whatever its layers are.
            config.pop("layer", None)
            _apply_override(module, override, config)


def _apply(module: nn.Module, config: Mapping[str, object], *, whole: bool = False) -> None:
    from hookloop_mmengine.registry import WEIGHT_INITIALIZERS

    initializer = cast("BaseInit", WEIGHT_INITIALIZERS.build(config))
    initializer.wholemodule = whole
    initializer(module)


def _apply_override(module: nn.Module, override: object, default: Mapping[str, object]) -> None:
    if not isinstance(override, dict | list):
        raise TypeError(f"override must be a dict or a list of dict, but got {type(override)}")
    for entry in [override] if isinstance(override, dict) else override:
        config = dict(entry)
        name = config.pop("name", None)
        if name is None:
            raise ValueError(f'`override` must contain the key "name", but got {config}')
        if config and "type" not in config:
            raise ValueError(f'`override` need "type" key, but got {config}')
        if not hasattr(module, name):
            raise RuntimeError(
                f"module did not have attribute {name}, but init_cfg is {config or default}."
            )
        _apply(getattr(module, name), config or default, whole=True)


def update_init_info(module: nn.Module, init_info: str) -> None:
    """Note for the log how those parameters of a module were initialized that have changed."""
    if not hasattr(module, "_params_init_info"):
        raise AssertionError(f"Can not find `_params_init_info` in {module}")
    notes = cast("dict[Tensor, dict[str, object]]", module._params_init_info)
    for name, param in module.named_parameters():
        if param not in notes:
            raise AssertionError(
                f"Find a new parameter named `{name}` during executing the `init_weights` of "
                f"`{type(module).__name__}`. Please do not add or replace parameters there."
            )
        mean = param.data.mean().cpu()
        # The mean shows cheaply whether the values are others than before.
        if notes[param]["tmp_mean_value"] != mean:
            notes[param] |= {"init_info": init_info, "tmp_mean_value": mean}
