"""``mmengine.model.BaseModule``: a module that can initialize its weights."""

from __future__ import annotations

from torch import nn


class BaseModule(nn.Module):
    """A module with ``init_cfg``.

    Args:
        init_cfg: How the weights are initialized. Only ``Pretrained`` with a checkpoint has an
            effect; everything else is left to ``init_weights`` of subclasses.
    """

    def __init__(self, init_cfg: object = None) -> None:
        super().__init__()
        self.init_cfg = init_cfg
        self._is_init = False

    @property
    def is_init(self) -> bool:
        """Whether the weights have been initialized."""
        return self._is_init

    def init_weights(self) -> None:
        """Initialize the weights of this module and those inside it; a second call does nothing."""
        if self._is_init:
            return
        # Children first, so that they do not overwrite pretrained weights.
        for child in self.children():
            init = getattr(child, "init_weights", None)
            if callable(init):
                init()
        if isinstance(self.init_cfg, dict) and self.init_cfg.get("type") == "Pretrained":
            # Late, because the runner imports the models.
            from hookloop.dialects.mmengine.runner.checkpoint import load_checkpoint

            load_checkpoint(self, str(self.init_cfg["checkpoint"]), map_location="cpu")
        self._is_init = True


class Sequential(BaseModule, nn.Sequential):
    """A sequence of modules with ``init_cfg``."""

    def __init__(self, *args: nn.Module, init_cfg: object = None) -> None:
        # Not super(): nn.Sequential would take init_cfg for a module.
        BaseModule.__init__(self, init_cfg)
        for index, module in enumerate(args):
            self.add_module(str(index), module)


class ModuleList(BaseModule, nn.ModuleList):
    """A list of modules with ``init_cfg``."""

    def __init__(self, modules: list[nn.Module] | None = None, init_cfg: object = None) -> None:
        BaseModule.__init__(self, init_cfg)
        self.extend(modules or [])
