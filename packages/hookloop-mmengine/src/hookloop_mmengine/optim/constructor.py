"""``mmengine.optim.build_optim_wrapper``: build an optimizer with rules per parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from torch import nn
from torch.optim import Optimizer

from hookloop.errors import nearest
from hookloop_mmengine.logging import print_log
from hookloop_mmengine.optim.optim_wrapper import OptimWrapper

_RULES = (
    "custom_keys", "bias_lr_mult", "bias_decay_mult", "norm_decay_mult", "flat_decay_mult",
    "dwconv_decay_mult", "dcn_offset_lr_mult", "bypass_duplicate",
)  # fmt: skip
# By name, because they belong to a package that is rarely installed.
_DEFORMABLE = ("DeformConv2d", "ModulatedDeformConv2d")
_NORMS = (
    nn.modules.batchnorm._BatchNorm,
    nn.modules.instancenorm._InstanceNorm,
    nn.GroupNorm,
    nn.LayerNorm,
)


def build_optim_wrapper(model: nn.Module, cfg: Mapping[str, object]) -> OptimWrapper:
    """Build a wrapped optimizer with the constructor that ``constructor`` names."""
    from hookloop_mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS

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
        described = self.optimizer_cfg if isinstance(self.optimizer_cfg, Mapping) else {}
        self.base_lr = cast("float | None", described.get("lr"))
        self.base_wd = cast("float | None", described.get("weight_decay"))
        self._validate_cfg()

    def _validate_cfg(self) -> None:
        """Reject rules that nobody reads, and multipliers of a decay that is not given."""
        # A constructor of a project has rules of its own.
        for name in self.paramwise_cfg if type(self) is DefaultOptimWrapperConstructor else ():
            if name not in _RULES:
                raise KeyError(f"paramwise_cfg has no '{name}'.{nearest(name, _RULES)}")
        custom = self.paramwise_cfg.get("custom_keys") or {}
        if not isinstance(custom, Mapping):
            raise TypeError(f"If specified, custom_keys must be a dict, but got {type(custom)}")
        decays = any("decay_mult" in rules for rules in custom.values())
        names = ("bias_decay_mult", "norm_decay_mult", "dwconv_decay_mult")
        if self.base_wd is None and (decays or any(name in self.paramwise_cfg for name in names)):
            raise ValueError("base_wd should not be None")

    def __call__(self, model: nn.Module) -> OptimWrapper:
        """Build the wrapped optimizer of a model."""
        from hookloop_mmengine.registry import OPTIM_WRAPPERS, OPTIMIZERS

        model = getattr(model, "module", model)
        options = {"type": "OptimWrapper", **self.optim_wrapper_cfg}
        # The groups of an optimizer object are as the user made them.
        if isinstance(self.optimizer_cfg, Optimizer):
            options["optimizer"] = self.optimizer_cfg
        else:
            described = dict(cast("Mapping[str, object]", self.optimizer_cfg))
            described["params"] = self._groups(model)
            options["optimizer"] = OPTIMIZERS.build(described)
        return cast("OptimWrapper", OPTIM_WRAPPERS.build(options))

    def _groups(self, model: nn.Module) -> object:
        # One group: torch updates the parameters of a group together, which is faster than one by
        # one.
        if not self.paramwise_cfg:
            return model.parameters()
        groups: list[dict[str, object]] = []
        self.add_params(groups, model)
        return groups

    def add_params(
        self,
        params: list[dict[str, object]],
        module: nn.Module,
        prefix: str = "",
        is_dcn_module: bool | None = None,
    ) -> None:
        """Add a group for each parameter of a module; constructors of projects override this."""
        rules = ParamRules(self.paramwise_cfg, self.base_lr, self.base_wd, bool(is_dcn_module))
        for name, parameter in module.named_parameters(recurse=False):
            group: dict[str, object] = {"params": [parameter]}
            full = f"{prefix}.{name}" if prefix else name
            # Shared parameters are met once per module, and torch rejects duplicates.
            if self._is_in(group, params):
                continue
            if not parameter.requires_grad:
                print_log(f"{full} is skipped since its requires_grad=False", "current")
                continue
            params.append(group | rules.settings(full, parameter, module))
        is_dcn = type(module).__name__ in _DEFORMABLE
        for name, child in module.named_children():
            self.add_params(
                params, child, prefix=f"{prefix}.{name}" if prefix else name, is_dcn_module=is_dcn
            )

    def _is_in(
        self, param_group: Mapping[str, object], param_group_list: Sequence[Mapping[str, object]]
    ) -> bool:
        """Return whether one of the groups has a parameter of this one."""
        own = {id(one) for one in cast("list[nn.Parameter]", param_group["params"])}
        return any(
            id(one) in own
            for group in param_group_list
            for one in cast("list[nn.Parameter]", group["params"])
        )


@dataclass(frozen=True)
class ParamRules:
    """The learning rate and decay of a parameter, by its name and kind.

    Attributes:
        rules: The rules of ``paramwise_cfg``.
        lr: The learning rate that the multipliers apply to.
        decay: The weight decay that the multipliers apply to.
        is_dcn: Whether the parameter is inside a deformable convolution.
    """

    rules: Mapping[str, object]
    lr: float | None
    decay: float | None
    is_dcn: bool = False

    def settings(self, name: str, parameter: nn.Parameter, module: nn.Module) -> dict[str, object]:
        """Return the settings of the group of a parameter."""
        custom = cast("Mapping[str, Mapping[str, object]]", self.rules.get("custom_keys") or {})
        # Sorted by name first, so that keys of equal length have a fixed order, as in MMEngine.
        for key in sorted(sorted(custom), key=len, reverse=True):
            if key in name:
                own = custom[key]
                scaled = self._scaled(own.get("lr_mult", 1.0), own.get("decay_mult", 1.0))
                return scaled | dict(own)  # Settings of the optimizer may be among them.
        return self._scaled(self._lr_mult(name, module), self._decay_mult(name, parameter, module))

    def _lr_mult(self, name: str, module: nn.Module) -> object:
        if "conv_offset" in name and self.is_dcn and isinstance(module, nn.Conv2d):
            return self.rules.get("dcn_offset_lr_mult")
        # A bias of a norm has the rules of norms.
        is_bias = name.rpartition(".")[2] == "bias" and not isinstance(module, _NORMS)
        return self.rules.get("bias_lr_mult") if is_bias and not self.is_dcn else None

    def _decay_mult(self, name: str, parameter: nn.Parameter, module: nn.Module) -> object:
        # The first rule that is given counts, in MMEngine's order.
        is_bias = name.rpartition(".")[2] == "bias" and not self.is_dcn
        # MMEngine's test for depth-wise convolutions.
        is_depthwise = isinstance(module, nn.Conv2d) and module.in_channels == module.groups
        for applies, rule in (
            (isinstance(module, _NORMS), "norm_decay_mult"),
            (is_bias, "bias_decay_mult"),
            (is_depthwise, "dwconv_decay_mult"),
            (parameter.ndim == 1 and not self.is_dcn, "flat_decay_mult"),
        ):
            if applies and self.rules.get(rule) is not None:
                return self.rules[rule]
        return None

    def _scaled(self, lr_mult: object, decay_mult: object) -> dict[str, object]:
        settings: dict[str, object] = {}
        # Without a rate in the config the default of the optimizer holds, which is not known here.
        if lr_mult is not None and self.lr is not None:
            settings["lr"] = self.lr * cast("float", lr_mult)
        if decay_mult is not None and self.decay is not None:
            settings["weight_decay"] = self.decay * cast("float", decay_mult)
        return settings
