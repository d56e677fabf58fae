"""What a checkpoint holds of each rank: random numbers, and buffers that differ."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch

from hookloop.checkpoint.state.schema import restoring
from hookloop.data.random.states import GeneratorStates, seed_rank
from hookloop.errors import CheckpointError
from hookloop.objects.marks import mark_of
from hookloop.objects.values import is_equal

if TYPE_CHECKING:
    from hookloop.data.stream import Stream
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")


def state_of_ranks(run: Run) -> dict[str, object]:
    """Collect what differs from rank to rank."""
    own = GeneratorStates.now().state
    undeclared = run.undeclared.state(tells=run.world.is_main)
    kept: dict[str, object] = {"undeclared": undeclared} if undeclared else {}
    if run.world.is_alone or run.ranks.is_broken:  # A rank that failed speaks for itself alone.
        return {"rng": [own], **kept}
    if run.world.logical:  # Nothing differs, or the bits would depend on the number of processes.
        return {"rng": [_equal_numbers(run, own)], **kept}
    workers = {name: states for name, one in _read(run) if (states := one.worker_states())}
    values = undeclared.get("values") or {}
    # What is mostly equal, such as the weights of a teacher, is sent only where it is not.
    mine = (own, own_buffers(run.model), workers, own_data(run), repr(mark_of(values)))
    rng, buffers, worker_states, data, marks = zip(*run.ranks.gather(mine), strict=True)
    parts: dict[str, object] = {"rng": list(rng), "world": {"size": run.world.size}, **kept}
    if len(set(marks)) > 1:
        parts["undeclared_of_ranks"] = list(run.ranks.gather(values))
    if own_buffers(run.model):
        parts["buffers"] = list(buffers)
    if any(worker_states):
        parts["workers"] = list(worker_states)
    if any(data):
        parts["data_of_ranks"] = list(data)
    return parts


def _equal_numbers(run: Run, own: dict[str, object]) -> dict[str, object]:
    """Return the random numbers of the first process; warn if those of another one differ."""
    of_ranks = run.ranks.gather(own)
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
    rank, size = run.world.rank, run.world.size
    with restoring("random numbers", label):
        saved = cast("list[dict[str, object]]", checkpoint["rng"])
        is_same = len(saved) == (1 if run.world.logical else size)
        if run.world.logical:
            rank = 0
        found = GeneratorStates(saved[rank if is_same else 0])
        try:
            found.restore()
            if not is_same and rank:  # Each rank draws other numbers than all ranks before.
                seed_rank(rank)
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
