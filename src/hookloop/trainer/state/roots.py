"""Where a run may have state that nobody declared; see `hookloop.checkpoint.state.undeclared`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from torch.optim import Optimizer
from torch.utils.data import DataLoader, IterableDataset

from hookloop.beside import declares_state
from hookloop.checkpoint.state.undeclared import Roots
from hookloop.data.reading.samplers import Stateful, is_of_torch, samplers_of
from hookloop.engine.hook import FunctionHook, Hook
from hookloop.metrics.meters import Accumulating
from hookloop.objects.held import Root

if TYPE_CHECKING:
    from hookloop.data.stream import Stream
    from hookloop.engine.run import Run
    from hookloop.trainer.preparation import Prepared


class RootsOfRun(Roots):
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
        roots |= _named("loss", run._internals.loss_function) | _named(
            "step", run._internals.step_function
        )
        for name, metric in run._internals.meters.items():
            # An object that accumulates is set to zero before each evaluation.
            is_reset = isinstance(metric, Accumulating)
            roots[f"metrics.{name}" if name else "metrics"] = Root(metric, only_tensors=is_reset)
        for name, schedule in run.schedules.items():
            roots[f"schedules.{name}"] = Root(schedule.scheduler, is_declared=True)
        for name, optimizer in run.optimizers.items():
            roots[f"optimizers.{name}"] = Root(optimizer, is_declared=True)
        if steps := [one for one in self._prepared.steps if not declares_state(type(one))]:
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
        hooks = [hook for hook in run.hooks if _holder_of(hook) is None]
        train = [] if run.train_data is None else run.train_data.parts()
        data = [one.data for one in (*train, *run.val_data.values())]
        loaders = [one for one in data if isinstance(one, DataLoader)]
        scaler = [] if run._internals.scaler is None else [run._internals.scaler]
        # Hooks declare what of it has to be kept. It may lead to the run itself.
        return [*hooks, *loaders, *scaler, *run._internals.shared.values()]

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
    # That of a package of ours may lead to a runner of its own, which knows the whole run.
    return {} if declares_state(type(given)) else {name: Root(given)}


def _roots_of_data(source: Stream) -> dict[str, Root]:
    data: object = source.data
    # Other data has another name: what a checkpoint holds of it waits until the hook brings it.
    is_replaced = source.current.is_replaced
    base = f"{source.name}.replaced" if is_replaced else source.name
    root = partial(Root, is_data=True, is_replaced=is_replaced)
    if isinstance(data, list | tuple):
        return {base: root(data)}
    if not isinstance(data, DataLoader):  # It is read again up to its position.
        return {}
    loader: DataLoader[object] = data
    roots = {f"{base}.collate_fn": root(loader.collate_fn)}
    # What an iterable data set has moved on to is read again at a resume, and is warned of.
    if not isinstance(loader.dataset, IterableDataset | Stateful):
        roots[f"{base}.dataset"] = root(loader.dataset)
    for number, sampler in enumerate(samplers_of(loader)):
        if not is_of_torch(sampler) and not isinstance(sampler, Stateful):
            name = f"{base}.sampler" + (f"#{number}" if number else "")
            roots[name] = root(sampler, is_kept_apart=True)
    return roots


def _holder_of(hook: Hook) -> object:
    """Return in what a hook may have state; None if it declares its state, or only observes."""
    if not hook.takes_part_in_training or hook.ranks == "first":
        return None
    if isinstance(hook, FunctionHook):
        return [one for one in vars(hook).values() if callable(one)]
    # A class of ours declares what it sets, and nothing that a user's subclass adds.
    declares = next(kind for kind in type(hook).__mro__ if "state_dict" in vars(kind))
    return None if declares_state(type(hook)) or not declares_state(declares) else hook
