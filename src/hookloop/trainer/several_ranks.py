"""What makes a run on many ranks one run: equal weights, one order of the data, shared updates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from hookloop.checkpoint.shards.reading import Shards as OpenShards
from hookloop.checkpoint.store.storage import is_checkpoint_directory
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.data.random.states import GeneratorStates, seed_rank
from hookloop.engine.sync_points import SyncPoints
from hookloop.errors import HookloopError
from hookloop.parallel.ranks import Ranks
from hookloop.parallel.sharded import Shards, check_shardable
from hookloop.runs.records import plain
from hookloop.trainer.planning import check_on_ranks
from hookloop.version import VERSION

if TYPE_CHECKING:
    from hookloop.data.stream import Stream
    from hookloop.engine.loop import Loop
    from hookloop.engine.run import Run
    from hookloop.parallel.settings import Parallel
    from hookloop.parallel.world import World
    from hookloop.trainer.start import Start

Found = tuple[str, dict[str, object]]
"""Where a checkpoint is, and what it holds."""


def check_parallel(run: Run, settings: Parallel) -> None:
    """Reject a way of working together that cannot work, before anything is started."""
    size = run.world.size
    if settings.logical is not None and settings.logical < size:
        raise HookloopError(
            f"parallel: {{logical: {settings.logical}}} for {size} processes leaves some without "
            "work: start fewer, or cut into more logical ranks.",
            argument="parallel",
        )
    if size == 1:
        return
    if settings.strategy == "none":
        raise HookloopError(
            f"parallel='none' allows one process, and the launcher has started {size}: start one, "
            "or write parallel='replicated'.",
            argument="parallel",
        )
    if settings.is_sharded:
        check_shardable(run.model, run.optimizers, settings, size)


def join_ranks(run: Run, settings: Parallel) -> None:
    """Check how the ranks work together, and let this one read its part of the data."""
    check_parallel(run, settings)
    share_streams(run)


def share_streams(run: Run) -> None:
    """Let this rank read its part of each global batch."""
    world = run.world
    if not world.cuts_batches:
        return
    for stream, is_training in _streams(run):
        # What is predicted is joined again, part by part.
        logical = 0 if stream in run._internals.predict_data.values() else world.logical
        stream.share_among(
            world.data_rank, world.data_size, logical=logical, is_training=is_training
        )
    join_orders(run)


def join_orders(run: Run) -> None:
    """Draw the orders of all data from one sequence, as one process does from its generators."""
    orders = [stream.order for stream, _ in _streams(run) if stream.order.shared is not None]
    for order in orders:
        order.shared = orders[0].shared


def agree_on_order(run: Run, *, is_new: bool) -> None:
    """Give all ranks the order of the data that the first one has, and random numbers of their own.

    Args:
        run: The run.
        is_new: Whether its training begins now. Otherwise the random numbers are those with which
            it continues.
    """
    if not run.world.cuts_batches or is_divided(run):
        return
    start = run._internals.ranks.share(GeneratorStates.now(gpus=False).state)
    for stream, is_training in _streams(run):
        if is_new and is_training:
            stream.order.now = GeneratorStates(start)
        stream.load_order_state(run._internals.ranks.share(stream.order_state()))
    if is_new:
        GeneratorStates(start).restore()
        if not run.world.logical:  # Each of those has random numbers of its own in each update.
            seed_rank(run.world.data_rank)


def align_ranks(run: Run, settings: Parallel) -> None:
    """Check that ranks are alike, and give all of them the weights of the first, or their parts."""
    if run.world.is_alone:
        return
    check_alike(run)
    if run._internals.shards is None:  # Afterwards each rank has parts of its own.
        others = run._internals.undeclared.tensors().values()
        run._internals.ranks.copy_from_first(
            [*run.model.parameters(), *run.model.buffers(), *others]
        )
    shard_model(run, settings)


def shard_model(run: Run, settings: Parallel) -> None:
    """Spread the parameters of the model over all ranks, once."""
    if not (run.world.is_alone or not settings.is_sharded or run._internals.shards is not None):
        run._internals.shards = Shards(
            run.model, run.optimizers, run._internals.ranks, settings, run.device
        )


def check_alike(run: Run) -> None:
    """Reject ranks that were started with different things; name the rank that differs."""
    check_on_ranks(run.hooks)
    facts = {
        "version of hookloop": VERSION,
        "version of torch": str(torch.__version__),
        "model": {name: tuple(one.shape) for name, one in run.model.state_dict().items()},
        "modules besides the model": {
            name: tuple(one.shape) for name, one in run._internals.undeclared.tensors().items()
        },
        "config": plain(run.config),
        "hooks": [hook.name for hook in run.hooks],
        "length of the data": [stream.num_batches for stream, _ in _streams(run)],
        "limits": [run.progress.max_epochs, run.progress.max_iters],
        "seed": run._internals.seed,
        "arguments": {
            name: one for name, one in run._internals.arguments.items() if name != "seed"
        },
    }
    own = {name: _digest(fact) for name, fact in facts.items()}
    of_ranks = run._internals.ranks.gather(own)
    for rank, theirs in enumerate(of_ranks):
        differing = [name for name in facts if theirs[name] != of_ranks[0][name]]
        if differing:
            raise HookloopError(
                f"Rank {rank} was started with another {' and '.join(differing)} than rank 0: all "
                "ranks have to run the same script with the same arguments and files."
            )


def find_checkpoint(run: Run, start: Start, stores: list[str]) -> Found | None:
    """Load the checkpoint to continue from; the first rank decides which one that is."""
    found = load_on_all_ranks(run, lambda whole: start.take_checkpoint(stores, whole=whole))
    start.forget_checkpoint()  # Ranks other than the first did not take it themselves.
    return found


def load_on_all_ranks(run: Run, find: Callable[[bool], Found | None]) -> Found | None:
    """Load a checkpoint that the first rank finds.

    Args:
        run: The run.
        find: Finds and loads it, given whether the tensors of a directory are read.
    """
    if run.world.is_alone:
        return find(True)
    # Parts of a sharded model are read later, by each rank its own.
    whole = run._internals.shards is None
    found = find(whole) if run.world.is_main else None
    label = run._internals.ranks.share(found[0] if found is not None else None)
    if label is not None and not run.world.is_main:
        place, _, name = label.rpartition("/")
        found = label, CheckpointStore(place or ".").load(name, whole=whole)
    if found is not None and not whole and is_checkpoint_directory(Path(found[0])):
        # What hooks and the metrics have saved is not sharded.
        found = found[0], {**found[1], **OpenShards.open(found[0]).read_rest()}
    return found


def _digest(fact: object) -> str:
    text = json.dumps(fact, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _streams(run: Run) -> Iterator[tuple[Stream, bool]]:
    """Yield the data of a run, each with whether it is trained on."""
    for stream in run.train_data.parts() if run.train_data is not None else ():
        yield stream, True
    for streams in (run.val_data, run._internals.test_data, run._internals.predict_data):
        for stream in streams.values():
            yield stream, False


def join_divided(loop: Loop, world: World) -> None:
    """Let ranks train as one run whose data is divided and whose gradients are averaged already.

    Each rank draws its own orders and random numbers, which checkpoints hold for each of them.
    """
    run = loop.run
    run.world, run._internals.ranks = world, Ranks(world, run._internals.ranks.timeout)
    loop.sync_points = SyncPoints(run)


def is_divided(run: Run) -> bool:
    """Return whether each rank has data of its own; see `join_divided`."""
    return not run.world.is_alone and all(
        stream.order.shared is None for stream, _ in _streams(run)
    )
