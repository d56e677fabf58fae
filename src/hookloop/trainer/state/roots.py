"""Where a run may have state that nobody declared; see `hookloop.checkpoint.state.undeclared`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import FunctionType, MethodType
from typing import TYPE_CHECKING

from torch.optim import Optimizer
from torch.utils.data import DataLoader, IterableDataset

from hookloop.checkpoint.state.undeclared import Root
from hookloop.data.reading.samplers import Stateful, is_of_torch, samplers_of
from hookloop.engine.hook import FunctionHook, Hook
from hookloop.metrics.meters import Accumulating

if TYPE_CHECKING:
    from torch.optim.lr_scheduler import LRScheduler

    from hookloop.data.stream import Stream
    from hookloop.engine.run import Run
    from hookloop.trainer.preparation import Prepared


class RootsOfRun:
    """Where to look in a run.

    Args:
        run: The run.
        prepared: What was done to its model first.
    """

    def __init__(self, run: Run, prepared: Prepared) -> None:
        self._run = run
        self._prepared = prepared

    def __call__(self) -> Mapping[str, Root]:
        """Return the objects by name."""
        run = self._run
        roots = {"model": Root(run.model)}
        roots |= _named("loss", run.loss_function) | _named("step", run.step_function)
        for name, metric in run.meters.items():
            # An object that accumulates is set to zero before each evaluation.
            is_reset = isinstance(metric, Accumulating)
            roots[f"metrics.{name}" if name else "metrics"] = Root(metric, only_tensors=is_reset)
        for name, schedule in run.schedules.items():
            roots[f"schedules.{name}"] = Root(_functions_of(schedule.scheduler))
        if steps := [one for one in self._prepared.steps if _is_users(one)]:
            roots["prepare"] = Root(steps)
        for hook in run.hooks:
            if (holder := _holder_of(hook)) is not None:
                roots[f"hooks.{hook.name}"] = Root(holder)
        train = [] if run.train_data is None else run.train_data.parts()
        for source in (*train, *run.val_data.values()):
            roots |= _roots_of_data(source)
        return roots

    def declared(self) -> Iterable[object]:
        """Return what checkpoints hold by itself, or what belongs to the run."""
        run = self._run
        schedulers = [schedule.scheduler for schedule in run.schedules.values()]
        hooks = [hook for hook in run.hooks if _holder_of(hook) is None]
        train = [] if run.train_data is None else run.train_data.parts()
        data = [one.data for one in (*train, *run.val_data.values())]
        loaders = [one for one in data if isinstance(one, DataLoader)]
        scaler = [] if run.scaler is None else [run.scaler]
        # A facade is the run itself, in the words of another system.
        facades = run.facades.values()
        return [*run.optimizers.values(), *schedulers, *hooks, *loaders, *scaler, *facades]

    def optimizers(self) -> Mapping[str, Optimizer]:
        """Return the optimizers by name."""
        return self._run.optimizers

    def freezes(self) -> bool:
        """Return whether a hook freezes parameters, and does so again after a resume."""
        return any(hook.changes_what_trains for hook in self._run.hooks)


def _named(name: str, given: object) -> dict[str, Root]:
    if given is None:
        return {}
    if isinstance(given, Mapping):  # A step for each optimizer.
        return {f"{name}.{key}": Root(one) for key, one in given.items()}
    return {name: Root(given)}


def _roots_of_data(source: Stream) -> dict[str, Root]:
    data: object = source.data
    if source.current.is_replaced:  # The hook that did it builds that data again after a resume.
        return {}
    if isinstance(data, list | tuple):
        return {source.name: Root(data, is_data=True)}
    if not isinstance(data, DataLoader):  # It is read again up to its position.
        return {}
    loader: DataLoader[object] = data
    roots = {f"{source.name}.collate_fn": Root(loader.collate_fn, is_data=True)}
    # What an iterable data set has moved on to is read again at a resume, and is warned of.
    if not isinstance(loader.dataset, IterableDataset | Stateful):
        roots[f"{source.name}.dataset"] = Root(loader.dataset, is_data=True)
    for number, sampler in enumerate(samplers_of(loader)):
        if not is_of_torch(sampler) and not isinstance(sampler, Stateful):
            name = f"{source.name}.sampler" + (f"#{number}" if number else "")
            roots[name] = Root(sampler, is_data=True, is_kept_apart=True)
    return roots


def _functions_of(scheduler: LRScheduler) -> list[object]:
    """Return the functions with which a scheduler computes; its ``state_dict`` leaves them out."""
    found: list[object] = []
    for value in vars(scheduler).values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, FunctionType | MethodType) or hasattr(one, "func"):
                found.append(one)
            elif hasattr(one, "get_last_lr") and one is not scheduler:
                found.append(_functions_of(one))
    return found


def _holder_of(hook: Hook) -> object:
    """Return in what a hook may have state; None if it declares its state, or only observes."""
    if not hook.takes_part_in_training or hook.ranks == "first":
        return None
    if isinstance(hook, FunctionHook):
        return [one for one in vars(hook).values() if callable(one)]
    is_declared = type(hook).state_dict is not Hook.state_dict
    return None if is_declared or not _is_users(hook) else hook


def _is_users(part: object) -> bool:
    return type(part).__module__.partition(".")[0] != "hookloop"
