"""Notice workers that all read the whole of an iterable data set, so that each sample is repeated.

torch gives every worker a copy of the data set, and one that does not divide itself is read as many
times as there are workers, without an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import chain, islice

from torch.utils.data import DataLoader

from hookloop.objects.values import is_equal

_log = logging.getLogger("hookloop")


def watch_for_repeats(loader: DataLoader[object], batches: Iterator[object]) -> Iterator[object]:
    """Return the batches of a pass from its start; report if its workers read the same ones.

    Batches come from one worker after the other. If the first ones of two workers are the same, and
    the next one is not, which it would be where all data are, each worker reads everything.
    """
    first = list(islice(batches, loader.num_workers + 1))
    same, again = first[:2], first[loader.num_workers :]
    if len(same) == 2 and _is_same(*same) and not (again and _is_same(first[0], again[0])):
        _log.warning(
            "The %d workers of a DataLoader read the same batches of %s, so that every sample "
            "comes %d times: each worker gets a copy of the data set. Let its __iter__ give only a "
            "part of it to each, by torch.utils.data.get_worker_info(), or take num_workers=1.",
            loader.num_workers,
            type(loader.dataset).__name__,
            loader.num_workers,
        )
    return chain(first, batches)


def _is_same(one: object, other: object) -> bool:
    try:
        return is_equal(one, other)
    except (RuntimeError, TypeError, ValueError):  # Of objects that cannot be compared.
        return False
