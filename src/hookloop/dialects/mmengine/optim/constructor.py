"""``mmengine.optim.build_optim_wrapper``: build an optimizer with rules per parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from torch import nn
from torch.optim import Optimizer

from hookloop.dialects.mmengine.optim.optim_wrapper import OptimWrapper
from hookloop.errors import nearest

_RULES = (
    "custom_keys", "bias_lr_mult", "bias_decay_mult", "norm_decay_mult", "flat_decay_mult",
    "dwconv_decay_mult", "dcn_offset_lr_mult", "bypass_duplicate",
)  # fmt: skip
_NORMS = (
    nn.modules.batchnorm._BatchNorm,
    nn.modules.instancenorm._InstanceNorm,
    nn.GroupNorm,
    nn.LayerNorm,
)


def build_optim_wrapper(model: nn.Module, cfg: Mapping[str, object]) -> OptimWrapper:
    """Build a wrapped optimizer with the constructor that ``constructor`` names."""
    from hookloop.dialects.mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS

    options = dict(cfg)
    kind = options.pop("constructor", "DefaultOptimWrapperConstructor")
    rules = options.pop("paramwise_cfg", None)
    constructor = OPTIM_WRAPPER_CONSTRUCTORS.build(
        {"type": kind, "optim_wrapper_cfg": options, "paramwise_cfg": rules}
    )
    return cast("DefaultOptimWrapperConstructor", constructor)(model)


class DefaultOptimWrapperConstructor:
    """Build the optimizer of a model, with a learning rate and a decay per kind of parameter.

    Args:
        optim_wrapper_cfg: ``dict(type="OptimWrapper", optimizer=dict(type="SGD", lr=0.1))``.
        paramwise_cfg: The rules: ``custom_keys`` (part of a name -> multipliers; the longest part
            wins), and multipliers for biases, norms, flat and depth-wise parameters.
    """

    def __init__(
        self,
        optim_wrapper_cfg: Mapping[str, object],
        paramwise_cfg: Mapping[str, object] | None = None,
    ) -> None:
        if "optimizer" not in optim_wrapper_cfg:
            raise AssertionError('`optim_wrapper_cfg` must contain "optimizer" config')
        self.optim_wrapper_cfg = dict(optim_wrapper_cfg)
        self.optimizer_cfg = self.optim_wrapper_cfg.pop("optimizer")
        self.paramwise_cfg = dict(paramwise_cfg or {})
        for name in self.paramwise_cfg:
            if name not in _RULES:
                raise KeyError(f"paramwise_cfg has no '{name}'.{nearest(name, _RULES)}")

    def __call__(self, model: nn.Module) -> OptimWrapper:
        """Build the wrapped optimizer of a model."""
        from hookloop.dialects.mmengine.registry import OPTIM_WRAPPERS, OPTIMIZERS

        model = getattr(model, "module", model)
        options = {"type": "OptimWrapper", **self.optim_wrapper_cfg}
        # The groups of an optimizer object are as the user made them.
        if isinstance(self.optimizer_cfg, Optimizer):
            options["optimizer"] = self.optimizer_cfg
        else:
            described = dict(cast("Mapping[str, object]", self.optimizer_cfg))
            described["params"] = self._groups(model, described)
            options["optimizer"] = OPTIMIZERS.build(described)
        return cast("OptimWrapper", OPTIM_WRAPPERS.build(options))

    def _groups(self, model: nn.Module, described: Mapping[str, object]) -> object:
        # One group: torch updates the parameters of a group together, which is faster than one by
        # one.
        if not self.paramwise_cfg:
            return model.parameters()
        lr = cast("float | None", described.get("lr"))
        decay = cast("float | None", described.get("weight_decay"))
        rules = ParamRules(self.paramwise_cfg, lr, decay)
        seen: set[int] = set()
        groups: list[dict[str, object]] = []
        for prefix, module in model.named_modules():
            for name, parameter in module.named_parameters(prefix=prefix, recurse=False):
                # Shared parameters are met once per module, and torch rejects duplicates.
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    settings = rules.settings(name, parameter, module)
                    groups.append({"params": [parameter], **settings})
        return groups


@dataclass(frozen=True)
class ParamRules:
    """The learning rate and decay of a parameter, by its name and kind.

    Attributes:
        rules: The rules of ``paramwise_cfg``.
        lr: The learning rate that the multipliers apply to.
        decay: The weight decay that the multipliers apply to.
    """

    rules: Mapping[str, object]
    lr: float | None
    decay: float | None

    def settings(self, name: str, parameter: nn.Parameter, module: nn.Module) -> dict[str, object]:
        """Return the settings of the group of a parameter."""
        # A frozen parameter has a group, but no rule applies to it, as in MMEngine.
        if not parameter.requires_grad:
            return {}
        custom = cast("Mapping[str, Mapping[str, object]]", self.rules.get("custom_keys", {}))
        # Sorted by name first, so that keys of equal length have a fixed order, as in MMEngine.
        for key in sorted(sorted(custom), key=len, reverse=True):
            if key in name:
                return self._scaled(
                    custom[key].get("lr_mult", 1.0), custom[key].get("decay_mult", 1.0)
                )
        return self._scaled(self._lr_mult(name, module), self._decay_mult(name, parameter, module))

    def _lr_mult(self, name: str, module: nn.Module) -> object:
        # A bias of a norm has the rules of norms.
        is_bias = name.rpartition(".")[2] == "bias" and not isinstance(module, _NORMS)
        return self.rules.get("bias_lr_mult") if is_bias else None

    def _decay_mult(self, name: str, parameter: nn.Parameter, module: nn.Module) -> object:
        if isinstance(module, _NORMS):
            return self.rules.get("norm_decay_mult")
        # MMEngine's test for depth-wise convolutions.
        is_depthwise = isinstance(module, nn.Conv2d) and module.in_channels == module.groups
        if is_depthwise and "dwconv_decay_mult" in self.rules:
            return self.rules["dwconv_decay_mult"]
        if name.rpartition(".")[2] == "bias":
            return self.rules.get("bias_decay_mult")
        return self.rules.get("flat_decay_mult") if parameter.ndim == 1 else None

    def _scaled(self, lr_mult: object, decay_mult: object) -> dict[str, object]:
        settings: dict[str, object] = {}
        # Without a rate in the config the default of the optimizer holds, which is not known here.
        if lr_mult is not None and self.lr is not None:
            settings["lr"] = self.lr * cast("float", lr_mult)
        if decay_mult is not None and self.decay is not None:
            settings["weight_decay"] = self.decay * cast("float", decay_mult)
        return settings
