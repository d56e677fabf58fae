"""Packages that mmagic imports for models that no test trains; some have no build for our torch."""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGES = {
    "albumentations", "clip", "diffusers", "imageio", "lmdb", "lpips", "mmcv.ops", "open_clip",
    "resize_right", "skimage", "torchvision", "transformers",
}  # fmt: skip


class HasEverything(type):
    """A class that has every name, as another such class."""

    def __getattr__(cls, name):
        return _made(name)


class Absent(ModuleType):
    """A module that has every name, as such a class."""

    def __getattr__(self, name):
        return _made(name)


def _made(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return HasEverything(name, (), {"__init__": _take_anything, "__bool__": lambda self: False})


def _take_anything(self, *arguments, **named):
    """Be a base class, a decorator or an answer: of what is available, for example."""


class Finder(MetaPathFinder, Loader):
    """Finds these packages before anybody else does."""

    def find_spec(self, name, path=None, target=None):
        is_meant = any(f"{name}.".startswith(f"{one}.") for one in PACKAGES)
        return ModuleSpec(name, self, is_package=True) if is_meant else None

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())
