"""Why a resume in the middle of some data may not be exact, told before the training."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from torch.utils.data import DataLoader

from hookloop.data.random.workers import OUT_OF_ORDER, why_not_carried
from hookloop.objects.held import held_by, held_by_class, is_examined
from hookloop.objects.values import GENERATOR_TYPES

SeedSamples = bool | Literal["workers"]
"""From where samples that workers load have their random numbers: see `Stream`."""


def reason_inexact(data: Iterable[object]) -> str | None:
    """Return the reason for data that is read from its start, or None if a resume is exact."""
    if isinstance(data, DataLoader):
        return (
            "its data set is iterable: on resume the batches before the position are read and "
            "dropped, and randomness inside it starts again"
        )
    if isinstance(data, Iterator):
        return "it can be read only once: a resumed run cannot find its position in it"
    if not isinstance(data, Sequence):
        return (
            "it is not a DataLoader and has no state_dict(): on resume the batches before the "
            "position are read and dropped"
        )
    if _has_custom_iter(data):
        return (
            f"{type(data).__name__} has an __iter__ of its own, which may give another order "
            "each time: on resume the batches before the position are read and dropped"
        )
    return None


def why_loader_inexact(
    loader: DataLoader[object], saved: Iterable[object], seed_samples: object, *, in_order: bool
) -> str | None:
    """Return the reason for a loader over a map-style data set, or None if a resume is exact.

    Args:
        loader: The loader.
        saved: The generators that a checkpoint holds.
        seed_samples: As given to the trainer.
        in_order: Whether its batches come in the order of the sampler.
    """
    known = {id(one) for one in saved}
    # What the data set and `collate_fn` hold in this process is saved as undeclared state.
    in_workers = loader.num_workers > 0
    sampler = loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
    holders = {
        "data set": loader.dataset if in_workers else None,
        "sampler": sampler,
        "collate_fn": [loader.collate_fn] if in_workers else None,
    }
    for what, holder in holders.items():
        besides = None if holder is loader.dataset else loader.dataset
        found_in = find_generators(holder, besides=besides)
        own = [name for name, found in found_in if id(found) not in known]
        if own:
            return (
                f"its {what} has a random generator of its own ('{own[0]}'), which no "
                "checkpoint holds: draw from torch's, NumPy's or Python's global generators"
            )
    if not loader.num_workers:
        return None
    return _why_workers_inexact(loader, seed_samples) if in_order else OUT_OF_ORDER


def _why_workers_inexact(loader: DataLoader[object], seed_samples: object) -> str | None:
    if seed_samples == "workers":
        return why_not_carried(loader)
    if not seed_samples:
        return (
            "seed_samples=False leaves the random numbers of its workers to torch, which starts "
            "them again on resume ('workers' repeats them)"
        )
    return None


def _has_custom_iter(data: Iterable[object]) -> bool:
    """Return whether the ``__iter__`` of a sequence is not that of a built-in type."""
    kind = next(kind for kind in type(data).__mro__ if "__iter__" in vars(kind))
    return kind.__module__.partition(".")[0] not in ("builtins", "collections", "_collections_abc")


MOST = 20_000
"""How many parts are examined in total."""

DEPTH = 4
"""How far attributes of attributes are followed."""


def find_generators(
    holder: object, depth: int = DEPTH, *, besides: object = None
) -> Iterator[tuple[str, object]]:
    """Yield the generators that an object draws from, each with its path, the nearest first.

    Args:
        holder: The object.
        depth: How far attributes of attributes are followed.
        besides: A part of it that is not looked at.
    """
    # Breadth first and bounded: nested lists of numbers would take minutes, and generators are
    # near the top.
    queue = deque([("", holder, depth)])
    examined = 0
    while queue and examined < MOST:
        path, part, levels = queue.popleft()
        for name, value, _ in (*held_by(part), *held_by_class(type(part))):
            examined += 1
            if isinstance(value, GENERATOR_TYPES):
                yield f"{path}{name}", value
            elif levels and value is not besides and is_examined(value):
                queue.append((f"{path}{name}.", value, levels - 1))
