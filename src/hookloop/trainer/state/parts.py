"""The parts of a run that have a state: how each is collected, restored and put back.

A file is checked, compared and loaded into fresh objects; memory is put back in place, because
optimizers, schedules and hooks hold the same objects.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, cast

import torch
from torch import Tensor, nn

from hookloop.checkpoint.saving.snapshot import Snapshot
from hookloop.checkpoint.shards.dtensors import is_sharded, spread
from hookloop.checkpoint.shards.reading import load_into
from hookloop.checkpoint.state.gradients import pending_gradients, restore_gradients
from hookloop.checkpoint.state.modules import keep_buffers, keep_modes, modules_of
from hookloop.checkpoint.state.optimizers import numbered_state, optimizer_state
from hookloop.checkpoint.state.schema import check_optimizer, restoring
from hookloop.checkpoint.state.shape import has_same_form
from hookloop.data.random.states import GeneratorStates, seed_rank
from hookloop.errors import CheckpointError
from hookloop.hooks.weights.average_weights import AverageWeights
from hookloop.hooks.weights.momentum_teacher import MomentumTeacher
from hookloop.lr_schedule import Schedule
from hookloop.objects.marks import mark_of
from hookloop.objects.values import is_equal
from hookloop.runs.trees import Difference

if TYPE_CHECKING:
    from hookloop.data.stream import Stream
    from hookloop.engine.hook import Hook
    from hookloop.engine.run import Run
    from hookloop.requests import Wanted
    from hookloop.trainer.intended_changes import Built

Where = Literal["device", "host"]
"""Where copies are kept; a second model may be too much for the memory of the device."""

Checkpoint = Mapping[str, object]

_log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class LoadedFrom:
    """Where a state comes from.

    Attributes:
        label: The file, for messages.
        changes: What differs on purpose.
        built: The groups of the optimizers, before anything was loaded.
        reads_shards: Whether each rank reads its own parts of the model.
        trains: Whether a training continues from it.
    """

    label: str
    changes: Sequence[Difference]
    built: Built
    reads_shards: bool
    trains: bool


class Part:
    """A part of a run; it does nothing that a subclass does not add.

    Args:
        run: The run.
    """

    key = ""

    def __init__(self, run: Run) -> None:
        self.run = run

    def state(self) -> Checkpoint:
        """Return its entries in a checkpoint: references, which the snapshot copies."""
        return {}

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        """Restore it from a checkpoint."""

    def keep(self, where: Where) -> Callable[[], None]:
        """Copy what an update changes, and return what puts it back in place."""
        return lambda: None

    def reset(self) -> None:
        """Forget what a new process would not have, and a load does not replace."""


class ModelPart(Part):
    """Parameters and buffers of the model."""

    key = "model"

    def state(self) -> Checkpoint:
        return {"model": self.run.model.state_dict()}

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        run = self.run
        if source.reads_shards:  # Each rank reads its own parts, of the optimizers too.
            load_into(run.model, run.optimizers, source.label, run._internals.ranks.group)
            return
        with restoring("model", source.label):
            restore_model(run.model, part_of(checkpoint, "model", source.label), source.label)

    def keep(self, where: Where) -> Callable[[], None]:
        modules = modules_of(self.run.model, self.run._internals.loss_function)
        of_modules = keep_buffers(modules), keep_modes(modules)
        extras = [
            (module, copy.deepcopy(module.get_extra_state()))
            for module in modules
            if type(module).get_extra_state is not nn.Module.get_extra_state
        ]
        parameters = [(one, _copied(one, where)) for one in _parameters_of(self.run)]

        def put_back() -> None:
            with torch.no_grad():
                for parameter, value in parameters:
                    parameter.copy_(value)
            for one in of_modules:
                one()
            for module, extra in extras:
                module.set_extra_state(extra)

        return put_back


class OptimizersPart(Part):
    """The optimizers, by name."""

    key = "optimizers"

    def state(self) -> Checkpoint:
        run = self.run
        is_by_name = is_model_sharded(run.model)
        return {
            "optimizers": {
                name: optimizer_state(run.model, one) if is_by_name else one.state_dict()
                for name, one in run.optimizers.items()
            }
        }

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        if source.reads_shards:
            return
        states = part_of(checkpoint, "optimizers", source.label)
        for name, optimizer in self.run.optimizers.items():
            with restoring(f"optimizers '{name}'", source.label):
                given = cast("Mapping[str, object]", states[name])
                state = numbered_state(self.run.model, optimizer, given)
                # torch accepts many wrong states and fails only at the next update.
                check_optimizer(optimizer, state)
                _load(optimizer, state, f"{source.label}: optimizers '{name}'")

    def keep(self, where: Where) -> Callable[[], None]:
        kept = [
            (one, one.param_groups, _copy_of_state(one.state_dict(), where))
            for one in self.run.optimizers.values()
        ]

        def put_back() -> None:
            for optimizer, groups, state in kept:
                optimizer.load_state_dict(state)
                # It makes new groups, and a schedule or a hook may hold the old ones.
                for group, loaded in zip(groups, optimizer.param_groups, strict=True):
                    group.clear()
                    group.update(loaded)
                optimizer.param_groups = groups

        return put_back


class SchedulesPart(Part):
    """The schedules, by name of their optimizer."""

    key = "schedules"

    def state(self) -> Checkpoint:
        return {"schedules": {name: one.state_dict() for name, one in self.run.schedules.items()}}

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        states = part_of(checkpoint, "schedules", source.label)
        for name, schedule in self.run.schedules.items():
            with restoring(f"schedules '{name}'", source.label):
                _load(schedule, states[name], f"{source.label}: schedules '{name}'")


class ScalerPart(Part):
    """The loss scaler of half precision, if there is one."""

    key = "scaler"

    def state(self) -> Checkpoint:
        scaler = self.run._internals.scaler
        return {"scaler": scaler.state_dict() if scaler is not None else None}

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        if self.run._internals.scaler is not None and checkpoint.get("scaler"):
            with restoring("scaler", source.label):
                self.run._internals.scaler.load_state_dict(
                    cast("dict[str, object]", checkpoint["scaler"])
                )

    def keep(self, where: Where) -> Callable[[], None]:
        if (scaler := self.run._internals.scaler) is None:
            return super().keep(where)
        state = copy.deepcopy(scaler.state_dict())
        return lambda: scaler.load_state_dict(state)


class ProgressPart(Part):
    """The counters, and a validation that is due."""

    key = "progress"

    def state(self) -> Checkpoint:
        return {"progress": {**self.run.progress.state_dict(), **_validation_due(self.run)}}

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        run, progress = self.run, part_of(checkpoint, "progress", source.label)
        run.progress.load_state_dict(progress)
        # A version that did not tell them apart used the training's random numbers for all.
        planned = progress.get("validation_planned", progress["validation_due"])
        _request_validation(run, progress["validation_due"])
        _request_validation(run, planned, planned=True)

    def keep(self, where: Where) -> Callable[[], None]:
        progress, values = self.run.progress, asdict(self.run.progress)

        def put_back() -> None:
            for name, value in values.items():
                setattr(progress, name, value)

        return put_back


class DataPart(Part):
    """The position in the data, and the random numbers of its workers."""

    key = "data"

    def state(self) -> Checkpoint:
        run = self.run
        return {
            "data": run.train_data.state_dict() if run.train_data is not None else {},
            "val_data": {name: one.reading_state() for name, one in run.val_data.items()},
        }

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        with restoring("position in the data", source.label):
            _restore_data(self.run, checkpoint, source.label)
        restore_workers(self.run, checkpoint, source.label)

    def keep(self, where: Where) -> Callable[[], None]:
        if (data := self.run.train_data) is None:
            return super().keep(where)
        state = copy.deepcopy(data.state_dict())

        def put_back() -> None:
            data.close()  # Workers are ahead of the position.
            data.load_state_dict(state)

        return put_back

    def reset(self) -> None:
        for part in self.run.train_data.parts() if self.run.train_data is not None else ():
            part.close()  # Its workers have loaded what comes later.


class MetricsPart(Part):
    """The metrics: every series, and the values of this iteration."""

    key = "metrics"

    def state(self) -> Checkpoint:
        return {"metrics": current_metrics(self.run), "metric_store": self.run.metrics.state_dict()}

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        run = self.run
        with restoring("metrics", source.label):
            run.metrics.load_state_dict(part_of(checkpoint, "metric_store", source.label))
        # What hooks put before the next iteration begins belongs to that of the checkpoint.
        run.metrics.stamp = (run.progress.iter, run.progress.epoch)

    def keep(self, where: Where) -> Callable[[], None]:
        return self.run.metrics.bookmark()

    def reset(self) -> None:
        self.run.metrics.clear()


class HooksPart(Part):
    """The state of each hook, by name."""

    key = "hooks"

    def state(self) -> Checkpoint:
        return {"hooks": {hook.name: hook.state_dict() for hook in self.run.hooks}}

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        _restore_hooks(self.run, part_of(checkpoint, "hooks", source.label), source.label)

    def keep(self, where: Where) -> Callable[[], None]:
        # Loading a state replaces what such a hook holds and changes none of it, so that a copy of
        # the references is enough.
        kept = [(hook, dict(vars(hook))) for hook in holding_weights(self.run)]

        def put_back() -> None:
            for hook, attributes in kept:
                vars(hook).clear()
                vars(hook).update(attributes)

        return put_back


class ObserversPart(Part):
    """The random numbers of hooks that only observe."""

    key = "side_randomness"

    def state(self) -> Checkpoint:
        return {"side_randomness": self.run._internals.observer_randomness.state_dict()}

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        if "side_randomness" not in checkpoint:  # Versions before 0.2 did not know of any.
            return
        with restoring("random numbers of hooks", source.label):
            state = part_of(checkpoint, "side_randomness", source.label)
            self.run._internals.observer_randomness.load_state_dict(state)

    def reset(self) -> None:
        self.run._internals.observer_randomness.forget_moments()


class UndeclaredPart(Part):
    """What else a training changes; it is collected with the other parts of ranks."""

    key = "undeclared"

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        with restoring("undeclared state", source.label):
            state = undeclared_of_rank(self.run, checkpoint)
            self.run._internals.undeclared.load(state, source.label, trains=source.trains)

    def keep(self, where: Where) -> Callable[[], None]:
        return self.run._internals.undeclared.keep()


class RanksPart(Part):
    """What each rank has of its own: one exchange for all of it, in which every rank takes part."""

    key = "ranks"

    def state(self) -> Checkpoint:
        return state_of_ranks(self.run)

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        restore_buffers(self.run, checkpoint, source.label)


class GradientsPart(Part):
    """Gradients that wait for an update.

    Attributes:
        is_kept: Whether an update may take several iterations. Otherwise the optimizer has used
            them all, and they would only make the file larger.
    """

    key = "gradients"
    is_kept = False

    def state(self) -> Checkpoint:
        return {"gradients": pending_gradients(self.run.optimizers)} if self.is_kept else {}

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        if source.trains:
            restore_gradients(self.run.optimizers, checkpoint.get("gradients"), source.label)

    def keep(self, where: Where) -> Callable[[], None]:
        # As they are for a search in host memory, which makes new ones and adds to none.
        kept = [
            (one, one.grad if one.grad is None or where == "host" else _copied(one.grad, where))
            for one in _parameters_of(self.run)
        ]

        def put_back() -> None:
            for parameter, gradient in kept:
                parameter.grad = gradient

        return put_back

    def reset(self) -> None:
        for optimizer in self.run.optimizers.values() if self.is_kept else ():
            optimizer.zero_grad(set_to_none=True)


class BuffersPart(Part):
    """What a forward may change besides gradients: the buffers of all modules."""

    key = "buffers"

    def keep(self, where: Where) -> Callable[[], None]:
        run = self.run
        return keep_buffers(
            modules_of(
                run.model, run._internals.loss_function, *run._internals.undeclared.modules()
            )
        )


class GeneratorsPart(Part):
    """The random numbers of the process. They are only checked here: the loop restores them.

    Attributes:
        loaded: Where they stand in the checkpoint.
    """

    key = "generators"
    loaded: GeneratorStates | None = None

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        self.loaded = randomness_of_rank(self.run, checkpoint, source.label)

    def keep(self, where: Where) -> Callable[[], None]:
        data = self.run.train_data
        generators = data.generators() if data is not None else []
        randomness = GeneratorStates.now(generators)
        return lambda: randomness.restore(generators)


def holding_weights(run: Run) -> list[AverageWeights | MomentumTeacher]:
    """List the hooks whose state is weights that an evaluation uses."""
    return [hook for hook in run.hooks if isinstance(hook, AverageWeights | MomentumTeacher)]


def is_model_sharded(model: torch.nn.Module) -> bool:
    """Return whether each rank has parts of the parameters only."""
    return any(map(is_sharded, model.parameters()))


def restore_model(model: torch.nn.Module, weights: Mapping[str, object], label: str) -> None:
    """Restore the weights of the model, all of them."""
    if is_model_sharded(model):
        own = model.state_dict()
        weights = {
            name: spread(value, own[name]) if name in own else value  # type: ignore[arg-type]
            for name, value in weights.items()
        }
    try:
        model.load_state_dict(cast("dict[str, torch.Tensor]", weights))
    except RuntimeError as error:
        raise CheckpointError(f"'{label}' is of another model. {error}") from error


def current_metrics(run: Run) -> dict[str, float]:
    """Return the metrics of the iteration just completed; an earlier validation is left out."""
    latest = run.metrics.latest_at(run.progress.iter)
    # A checkpoint is saved before the validation of its iteration. The newest results in the store
    # may be those of an earlier one, and would be taken for its own.
    current = {n: v for n, v in latest.items() if not n.startswith(("val/", "test/"))}
    if run.progress.validated_at == run.progress.iter:
        current |= run.metrics.stream("val")
    return current


def _validation_due(run: Run) -> dict[str, object]:
    requests = run._internals.requests
    due = {"validation_due": _plain_wanted(requests.validate)}
    if requests.planned != requests.validate:
        due["validation_planned"] = _plain_wanted(requests.planned)
    return due


def _plain_wanted(wanted: Wanted) -> object:
    return wanted if isinstance(wanted, bool) else sorted(wanted)


def _request_validation(run: Run, due: object, *, planned: bool = False) -> None:
    # The resumed run may have been given other validation data, or none.
    if due is True and run.val_data:
        run.validate(everywhere=True, planned=planned)
    elif names := [name for name in run.val_data if isinstance(due, list) and name in due]:
        run.validate(*names, everywhere=True, planned=planned)


def _restore_data(run: Run, checkpoint: Mapping[str, object], label: str) -> None:
    own = data_of_rank(run, checkpoint, label)
    if own is not None and run.train_data is not None:
        if own:  # Otherwise a new epoch begins on another number of ranks.
            run.train_data.load_state_dict(own)
    elif run.train_data is not None:
        data = part_of(checkpoint, "data", label)
        run.train_data.load_state_dict(data)
        if "order" not in data and run.world.cuts_batches:
            # Of a run in one process: its orders continue from the numbers of that process.
            rng = cast("list[dict[str, object]]", checkpoint["rng"])
            run.train_data.order.now = GeneratorStates(rng[0])
    # Streams may come and go between the runs: a new one starts from its beginning.
    for name, state in part_of(checkpoint, "val_data", label).items():
        if name in run.val_data:
            run.val_data[name].load_reading_state(cast("Mapping[str, object]", state))


def _restore_hooks(run: Run, states: Mapping[str, object], label: str) -> None:
    for hook in run.hooks:
        if hook.name in states:
            _restore_hook(hook, cast("Mapping[str, object]", states[hook.name]), label)
    names = {hook.name for hook in run.hooks}
    # Most hooks have no state. Removing or adding one of those changes nothing worth a warning.
    lost = [name for name, state in states.items() if state and name not in names]
    fresh = [hook.name for hook in run.hooks if hook.name not in states and hook.state_dict()]
    if lost:
        _log.warning("The checkpoint has states of hooks that are gone: %s", ", ".join(lost))
    if fresh:
        _log.warning("The checkpoint has no state for the hooks: %s", ", ".join(fresh))


def _restore_hook(hook: Hook, state: Mapping[str, object], label: str) -> None:
    # Of our own hooks the form of the state is known, so a damaged file is found before it is used.
    if type(hook).__module__.startswith("hookloop.hooks."):
        part = f"state of the hook '{hook.name}'"
        if not has_same_form(state, hook.state_dict()):
            raise CheckpointError(f"'{label}' cannot be resumed: its {part} is not what it saves.")
        with restoring(part, label):
            hook.load_state_dict(state)
        return
    try:  # Of somebody else's hook the error is somebody else's.
        hook.load_state_dict(state)
    except Exception as error:
        error.add_note(
            f"while the hook '{hook.name}' ({type(hook).__name__}) restored its state from the "
            "checkpoint; under another name it would start without one"
        )
        raise


def _load(holder: torch.optim.Optimizer | Schedule, state: object, label: str) -> None:
    try:
        holder.load_state_dict(cast("dict[str, object]", state))
    except ValueError as error:
        raise CheckpointError(f"'{label}' does not fit: {error}") from error


def part_of(checkpoint: Mapping[str, object], key: str, label: str) -> Mapping[str, object]:
    """Return a part of a checkpoint that every checkpoint has."""
    value = checkpoint.get(key)
    if not isinstance(value, Mapping):
        raise CheckpointError(
            f"'{label}' has no '{key}', so it cannot be resumed; its weights can be taken with "
            "load_from=."
        )
    return value


def _parameters_of(run: Run) -> list[Tensor]:
    """List the parameters of model, loss and optimizers, each once."""
    modules = modules_of(run.model, run._internals.loss_function)
    own = [one for module in modules for one in module.parameters(recurse=False)]
    held = [p for o in run.optimizers.values() for group in o.param_groups for p in group["params"]]
    return list({id(one): one for one in (*own, *held)}.values())


def _copied(tensor: Tensor, where: Where) -> Tensor:
    return tensor.detach().to("cpu", copy=True) if where == "host" else tensor.detach().clone()


def _copy_of_state(state: dict[str, object], where: Where) -> dict[str, object]:
    return Snapshot().take(state) if where == "host" else copy.deepcopy(state)


def state_of_ranks(run: Run) -> dict[str, object]:
    """Collect what differs from rank to rank."""
    own = GeneratorStates.now().state
    undeclared = run._internals.undeclared.state(tells=run.world.is_main)
    kept: dict[str, object] = {"undeclared": undeclared} if undeclared else {}
    if (
        run.world.is_alone or run._internals.ranks.is_broken
    ):  # A rank that failed speaks for itself alone.
        return {"rng": [own], **kept}
    if run.world.logical:  # Nothing differs, or the bits would depend on the number of processes.
        return {"rng": [_equal_numbers(run, own)], **kept}
    workers = {name: states for name, one in _read(run) if (states := one.worker_states())}
    values = undeclared.get("values") or {}
    # What is mostly equal, such as the weights of a teacher, is sent only where it is not.
    mine = (own, own_buffers(run.model), workers, own_data(run), repr(mark_of(values)))
    rng, buffers, worker_states, data, marks = zip(*run._internals.ranks.gather(mine), strict=True)
    parts: dict[str, object] = {"rng": list(rng), "world": {"size": run.world.size}, **kept}
    if len(set(marks)) > 1:
        parts["undeclared_of_ranks"] = list(run._internals.ranks.gather(values))
    if own_buffers(run.model):
        parts["buffers"] = list(buffers)
    if any(worker_states):
        parts["workers"] = list(worker_states)
    if any(data):
        parts["data_of_ranks"] = list(data)
    return parts


def _equal_numbers(run: Run, own: dict[str, object]) -> dict[str, object]:
    """Return the random numbers of the first process; warn if those of another one differ."""
    of_ranks = run._internals.ranks.gather(own)
    if not all(is_equal(one, own) for one in of_ranks):
        _log.warning(
            "The random numbers of the processes differ: a hook draws on some of them alone. What "
            "follows depends on the number of processes."
        )
    return of_ranks[0]


def undeclared_of_rank(run: Run, checkpoint: Mapping[str, object]) -> Mapping[str, object]:
    """Return the undeclared state of this rank; on another number of ranks, of the first."""
    state = cast("Mapping[str, object]", checkpoint.get("undeclared") or {})
    of_ranks = cast("list[object]", checkpoint.get("undeclared_of_ranks") or [])
    is_same = len(of_ranks) == run.world.size
    return {**state, "values": of_ranks[run.world.rank]} if is_same else state


def own_data(run: Run) -> dict[str, object] | None:
    """Return the position in the data of this rank, if each rank has data of its own."""
    stream = run.train_data
    is_own = stream is not None and stream.order.shared is None and not run.world.is_alone
    return stream.state_dict() if is_own and stream is not None else None


def data_of_rank(
    run: Run, checkpoint: Mapping[str, object], label: str
) -> Mapping[str, object] | None:
    """Return the position of this rank in data of its own, if the checkpoint has any."""
    of_ranks = cast("list[Mapping[str, object]]", checkpoint.get("data_of_ranks") or [])
    if not of_ranks:
        return None
    if len(of_ranks) == run.world.size:
        return of_ranks[run.world.rank]
    if any(state["position"] for state in of_ranks):
        raise CheckpointError(
            f"'{label}' was made by {_ranks(len(of_ranks))} in the middle of data that each had "
            f"divided for itself, and cannot continue on {_ranks(run.world.size)}: start as many, "
            "or resume from a checkpoint of the end of an epoch."
        )
    return {}


def restore_workers(run: Run, checkpoint: Mapping[str, object], label: str) -> None:
    """Give the workers of each rank their own random numbers back.

    On another number of ranks, only the first rank keeps those that it has.
    """
    saved = cast("list[dict[str, dict[str, object]]]", checkpoint.get("workers") or [])
    with restoring("random numbers of workers", label):
        for name, stream in _read(run) if run.world.rank else ():
            own = saved[run.world.rank].get(name) if len(saved) == run.world.size else None
            stream.load_worker_states(own, is_needed=False)


def _read(run: Run) -> list[tuple[str, Stream]]:
    """Return the data that a training reads, by name."""
    train = [] if run.train_data is None else run.train_data.parts()
    return [(one.name, one) for one in (*train, *run.val_data.values())]


def own_buffers(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the buffers that each rank computes from its part of a batch."""
    return {
        name: buffer.detach().cpu()
        for name, buffer in model.named_buffers()
        if buffer.is_floating_point()
    }


def restore_buffers(run: Run, checkpoint: Mapping[str, object], label: str) -> None:
    """Give each rank its own buffers back; on another number of ranks, their mean."""
    saved = cast("list[dict[str, torch.Tensor]]", checkpoint.get("buffers") or [])
    if not saved:
        return
    with restoring("buffers", label), torch.no_grad():
        for name, buffer in run.model.named_buffers():
            if name in saved[0]:
                of_ranks = [buffers[name] for buffers in saved]
                if len(saved) == run.world.size:
                    buffer.copy_(of_ranks[run.world.rank])
                else:
                    buffer.copy_(torch.stack(of_ranks).double().mean(0))


def randomness_of_rank(run: Run, checkpoint: Mapping[str, object], label: str) -> GeneratorStates:
    """Return the random numbers of a rank, after checking that they can be restored."""
    # A generator checks its state only when it is set. So each is set for a trial, and set back.
    now = GeneratorStates.now()
    size, tensor = run.world.size, run.world.tensor
    with restoring("random numbers", label):
        saved = cast("list[dict[str, object]]", checkpoint["rng"])
        is_same = len(saved) == (1 if run.world.logical else size)
        # Those that split layers draw alike, whatever they did before.
        rank = 0 if run.world.logical else run.world.data_rank * tensor
        found = GeneratorStates(saved[rank if is_same else 0])
        try:
            found.restore()
            if not is_same and rank:  # Each rank draws other numbers than all ranks before.
                seed_rank(run.world.data_rank)
                found = GeneratorStates.now()
        finally:
            now.restore()
    if not is_same:
        _log.warning(
            "'%s' was made on %s and continues on %s: the global batches stay the same; random "
            "numbers that each rank draws for itself, such as those of dropout, do not.",
            label,
            _ranks(len(saved)),
            _ranks(size),
        )
    return found


def _ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"
