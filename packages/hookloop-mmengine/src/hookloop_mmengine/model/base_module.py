"""``mmengine.model.BaseModule``: a module whose parts initialize their weights once.

Configs of weights, ``init_cfg``, are left to the real package: no hook file needs them.
"""

from __future__ import annotations

import copy
from abc import ABCMeta
from collections.abc import Iterable, Mapping

from torch import nn

from hookloop.errors import HookloopError
from hookloop_mmengine.missing import GRAFT


class BaseModule(nn.Module, metaclass=ABCMeta):
    """A module that initializes the weights of those inside it.

    Args:
        init_cfg: How the weights are initialized. It is kept; `init_weights` rejects it.
    """

    def __init__(self, init_cfg: object = None) -> None:
        super().__init__()
        self.init_cfg = copy.deepcopy(init_cfg)
        # Projects set it for parts that were loaded otherwise.
        self.is_init = False

    def init_weights(self) -> None:
        """Initialize the weights of the modules inside this one; a second call does nothing."""
        if self.is_init:
            return
        if self.init_cfg:
            raise HookloopError(
                f"{type(self).__name__} has init_cfg={self.init_cfg!r}, which hookloop does not "
                f"apply. Initialize the weights in the model's own init_weights(); or {GRAFT}."
            )
        for child in self.children():
            init = getattr(child, "init_weights", None)
            if callable(init) and not getattr(child, "is_init", False):
                init()
        self.is_init = True

    def __repr__(self) -> str:
        shown = super().__repr__()
        return f"{shown}\ninit_cfg={self.init_cfg}" if self.init_cfg else shown


class Sequential(BaseModule, nn.Sequential):
    """A sequence of modules with ``init_cfg``."""

    def __init__(self, *args: nn.Module, init_cfg: object = None) -> None:
        # Not super(): nn.Sequential would take init_cfg for a module.
        BaseModule.__init__(self, init_cfg)
        nn.Sequential.__init__(self, *args)


class ModuleList(BaseModule, nn.ModuleList):
    """A list of modules with ``init_cfg``."""

    def __init__(self, modules: Iterable[nn.Module] | None = None, init_cfg: object = None) -> None:
        BaseModule.__init__(self, init_cfg)
        nn.ModuleList.__init__(self, modules)


class ModuleDict(BaseModule, nn.ModuleDict):
    """A dict of modules with ``init_cfg``."""

    def __init__(
        self, modules: Mapping[str, nn.Module] | None = None, init_cfg: object = None
    ) -> None:
        BaseModule.__init__(self, init_cfg)
        nn.ModuleDict.__init__(self, modules)
