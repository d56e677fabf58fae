"""``mmengine.model.wrappers``: models that wrap another model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from hookloop_mmengine.missing import reject

MMDistributedDataParallel = DistributedDataParallel


class ModelView(nn.Module):
    """The model as hooks see it on several processes: with the model itself as ``module``.

    Gradients are averaged by the engine, so this wraps nothing else: calls and attributes are those
    of the model, and the names of its weights begin with ``module.``, as in MMEngine.

    Args:
        module: The model.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: object, **kwargs: object) -> object:
        """Call the model."""
        return self.module(*args, **kwargs)

    def __getattr__(self, name: str) -> object:  # type: ignore[override]
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":  # Before it is set, the line below would end up here again.
                raise
            return getattr(self.module, name)

    @property
    def training(self) -> bool:
        """Whether the model is in training mode; the engine changes the mode of the model."""
        return self.module.training

    @training.setter
    def training(self, mode: bool) -> None:
        if "module" in self.__dict__.get("_modules", ()):  # torch sets it before there is a module.
            self.module.training = mode

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Do nothing: the engine decides when gradients are averaged."""
        yield


def is_model_wrapper(model: nn.Module, registry: object = None) -> bool:
    """Return whether a model wraps another, which is its ``module``."""
    return isinstance(model, DataParallel | DistributedDataParallel | ModelView)


def view_of(model: nn.Module, last: object) -> ModelView:
    """Return the last view if it is that of the model, because hooks may keep it, or a new one."""
    return last if isinstance(last, ModelView) and last.module is model else ModelView(model)


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model itself, also where hooks see a view of it."""
    return model.module if isinstance(model, ModelView) else model


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
