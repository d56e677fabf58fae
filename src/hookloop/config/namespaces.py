"""The built-in names of each kind: our hooks, and the classes and functions of torch.

Each function imports what it lists, so it is called only when a name has to be looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType

from hookloop.config.locate import locate
from hookloop.dialects import catalogued, registered
from hookloop.errors import HookError


class LazyNames(Mapping[str, object]):
    """The names of a package's ``__all__``; each is imported when it is looked up."""

    def __init__(self, package: ModuleType) -> None:
        self._package = package
        self._names = sorted(package.__all__)

    def __getitem__(self, name: str) -> object:
        if name not in self._names:
            raise KeyError(name)
        return getattr(self._package, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class HookNames(LazyNames):
    """Our hooks, then those registered by files of a dialect, then the dialects' catalogues."""

    def __getitem__(self, name: str) -> object:
        if name in self._names:
            return super().__getitem__(name)
        if (own := registered(name)) is not None:
            return own
        # The names of a dialect can be looked up, but are not listed: ours stay the first choice.
        found = catalogued(name)
        if len(found) > 1:
            raise HookError(
                f"'{name}' is a hook of {' and of '.join(found)}: choose one with "
                f"dialect: {next(iter(found))}, all with --alias {next(iter(found))}, or one by "
                f"its path, '{next(iter(found.values()))}'."
            )
        for path in found.values():
            return locate(path)
        raise KeyError(name)


def hooks() -> Mapping[str, object]:
    """Return the hooks that come with hookloop."""
    import hookloop.hooks

    return HookNames(hookloop.hooks)


def optimizers() -> Mapping[str, object]:
    """Return the optimizers of ``torch.optim``."""
    import torch.optim

    return _subclasses(torch.optim, torch.optim.Optimizer)


def schedules() -> Mapping[str, object]:
    """Return the schedulers of ``torch.optim.lr_scheduler``."""
    from torch.optim import lr_scheduler

    return _subclasses(lr_scheduler, lr_scheduler.LRScheduler)


def data() -> Mapping[str, object]:
    """Return the loader and the composable data sets of ``torch.utils.data``."""
    import torch.utils.data

    # Not the whole module: samplers and base classes are not data.
    public = ("ChainDataset", "ConcatDataset", "DataLoader", "StackDataset", "Subset")
    return {name: getattr(torch.utils.data, name) for name in public}


def preparations() -> Mapping[str, object]:
    """Return the steps with which a model is prepared."""
    from hookloop.trainer import preparation

    return _subclasses(preparation, preparation.Preparation)


def losses() -> Mapping[str, object]:
    """Return the losses of ``torch.nn`` and the loss functions of ``torch.nn.functional``."""
    import torch.nn
    from torch.nn import functional

    # Losses have no common base class; only their names show what they are.
    modules = {name: loss for name, loss in vars(torch.nn).items() if name.endswith("Loss")}
    functions = {
        name: loss
        for name, loss in vars(functional).items()
        if name.endswith(("_loss", "cross_entropy", "kl_div")) and not name.startswith("_")
    }
    return {**modules, **functions}


def path_of_metric(name: str) -> str:
    """Return the path of a loss function that is named as a metric, or how a path is written.

    >>> path_of_metric("l1_loss"), path_of_metric("accuracy")
    ('torch.nn.functional.l1_loss', 'package.module:accuracy')
    """
    from torch.nn import functional

    is_loss = name in losses() and hasattr(functional, name)
    return f"torch.nn.functional.{name}" if is_loss else f"package.module:{name}"


def metrics() -> Mapping[str, object]:
    """Return the metrics of torchmetrics, if it is installed."""
    try:
        import torchmetrics
    except ModuleNotFoundError as error:
        if error.name != "torchmetrics":  # It is installed, and lacks something itself.
            raise
        return {}
    return _subclasses(torchmetrics, torchmetrics.Metric)


def _subclasses(module: ModuleType, base: type) -> dict[str, object]:
    return {
        name: found
        for name, found in vars(module).items()
        if isinstance(found, type) and issubclass(found, base) and found is not base
    }
