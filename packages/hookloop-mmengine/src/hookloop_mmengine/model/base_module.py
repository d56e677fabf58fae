"""``mmengine.model.BaseModule``: a module that initializes its weights as ``init_cfg`` says."""

from __future__ import annotations

import copy
import logging
from abc import ABCMeta
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from torch import nn

from hookloop_mmengine.dist import master_only
from hookloop_mmengine.logging import MMLogger, print_log
from hookloop_mmengine.model.weight_init import (
    PretrainedInit,
    initialize,
    update_init_info,
)
from hookloop_mmengine.model.wrappers import is_model_wrapper

_PRETRAINED = ("Pretrained", PretrainedInit)


class BaseModule(nn.Module, metaclass=ABCMeta):
    """A module with ``init_cfg``.

    The config of a module acts before those of the modules inside it, so the inner ones win.
    Pretrained weights are loaded last and replace all others.

    Args:
        init_cfg: How the weights are initialized: a dict, or a list of dicts.
    """

    def __init__(self, init_cfg: object = None) -> None:
        super().__init__()
        self.init_cfg = copy.deepcopy(init_cfg)
        self._is_init = False

    @property
    def is_init(self) -> bool:
        """Whether the weights have been initialized."""
        return self._is_init

    @is_init.setter
    def is_init(self, value: bool) -> None:
        # Projects set it for parts that were loaded otherwise.
        self._is_init = value

    def init_weights(self) -> None:
        """Initialize the weights of this module and those inside it; a second call does nothing."""
        name = type(self).__name__
        with self._noting_changes():
            if self._is_init:
                print_log(
                    f"init_weights of {name} has been called more than once.",
                    logger="current",
                    level=logging.WARNING,
                )
                return
            others, pretrained = _sorted_by_kind(self.init_cfg)
            initialize(self, others)
            for child in self.children():
                _init_child(child)
            initialize(self, pretrained)
            self._is_init = True

    @contextmanager
    def _noting_changes(self) -> Iterator[None]:
        """Note how each parameter is initialized; the outermost module writes it to the log."""
        if hasattr(self, "_params_init_info"):
            yield
            return
        name = type(self).__name__
        text = f"The value is the same before and after calling `init_weights` of {name} "
        notes: dict[object, dict[str, object]] = {
            param: {"init_info": text, "tmp_mean_value": param.data.mean().cpu()}
            for param in self.parameters()
        }
        for module in self.modules():
            # One dict for all: a parameter may be changed at any level.
            module._params_init_info = notes  # type: ignore[assignment]
        try:
            yield
            self._dump_init_info()
        finally:
            for module in self.modules():
                # Not delattr: a module that was replaced meanwhile has none.
                module.__dict__.pop("_params_init_info", None)

    @master_only
    def _dump_init_info(self) -> None:
        """Write to the log file how each parameter was initialized."""
        notes = cast("dict[object, dict[str, object]]", self._params_init_info)
        lines = [
            f"\n{name} - {param.shape}: \n{notes[param]['init_info']} \n"
            for name, param in self.named_parameters()
            if param in notes
        ]
        logger = MMLogger.get_current_instance()
        text = "Name of parameter - Initialization information\n" + "".join(lines)
        record = logger.makeRecord(logger.name, logging.INFO, "", 0, text, (), None)
        files = [one for one in logger.handlers if isinstance(one, logging.FileHandler)]
        # Only without a file on the screen, where it would be very long.
        for handler in files or logger.handlers:
            if logger.isEnabledFor(logging.INFO) and record.levelno >= handler.level:
                handler.handle(record)

    def __repr__(self) -> str:
        shown = super().__repr__()
        return f"{shown}\ninit_cfg={self.init_cfg}" if self.init_cfg else shown


def _sorted_by_kind(
    init_cfg: object,
) -> tuple[list[Mapping[str, object]], list[Mapping[str, object]]]:
    """Return the configs that draw or fill weights, and those that load them."""
    # An empty dict is not a config either.
    listed = [init_cfg] if isinstance(init_cfg, dict) and init_cfg else init_cfg or ()
    configs: list[Mapping[str, object]] = []
    for entry in cast("list[object]", listed):
        if not isinstance(entry, dict):
            raise AssertionError(f"init_cfg should be a dict or a list of dicts, not {init_cfg!r}")
        configs.append(entry)
    return (
        [one for one in configs if one["type"] not in _PRETRAINED],
        [one for one in configs if one["type"] in _PRETRAINED],
    )


def _init_child(child: nn.Module) -> None:
    if is_model_wrapper(child) and not hasattr(child, "init_weights"):
        child = cast("nn.Module", child.module)
    init = getattr(child, "init_weights", None)
    if callable(init) and not getattr(child, "is_init", False):
        init()
        # A method of the project's own does not note what it does.
        update_init_info(
            child, f"Initialized by user-defined `init_weights` in {type(child).__name__} "
        )


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
