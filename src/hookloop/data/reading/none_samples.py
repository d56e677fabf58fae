"""Name the sample that a data set returned as None, when a batch could not be made.

A `collate_fn` may leave out what is None, so that None alone is no mistake. Only when it fails, the
samples that it was given are looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any, cast

from torch.utils.data import Subset

_GROUP = "possibly_batched_index"
"""What torch calls the indices of a batch while it makes that."""

MOST = 5


class NamingCollate:
    """Makes a batch in a worker, and adds to an error which samples are None.

    The traceback of a worker reaches the training process as text, with its notes.

    Args:
        collate: The loader's own ``collate_fn``.
    """

    def __init__(self, collate: Any) -> None:  # noqa: ANN401 - whatever the user gives
        self.collate = collate

    def __call__(self, samples: object) -> object:
        """Make a batch."""
        try:
            return self.collate(samples)
        except Exception as error:
            note_none(error, _callers(sys._getframe(1)))
            raise


def note_none_in_traceback(error: BaseException) -> None:
    """Add to an error of reading data which samples were None, if it was raised in this process."""
    note_none(error, _frames_of(error.__traceback__))


def note_none(error: BaseException, frames: Iterator[FrameType]) -> None:
    """Add to an error which samples are None in the frame in which torch makes a batch."""
    for frame in frames:
        if _GROUP not in frame.f_locals:
            continue
        samples, group = frame.f_locals.get("data"), frame.f_locals[_GROUP]
        # A collate_fn of the user's may know what to do with a part that is None.
        is_part = "NoneType" in str(error)
        if isinstance(samples, list) and any(
            one is None or (is_part and _has_none(one)) for one in samples
        ):
            error.add_note(_describe(samples, _indices(group), frame.f_locals.get("self")))
        return


def _has_none(sample: object) -> bool:
    """Return whether a sample is None, or a part of it, as torch's own collate looks into it."""
    if isinstance(sample, Mapping):
        return any(map(_has_none, sample.values()))
    if isinstance(sample, tuple | list):
        return any(map(_has_none, sample))
    return sample is None


def _describe(samples: Sequence[object], indices: Sequence[object], fetcher: object) -> str:
    dataset = getattr(fetcher, "dataset", None)
    dataset = getattr(dataset, "inner", dataset)  # That of the user.
    places = [place for place, one in enumerate(samples) if _has_none(one)]
    if len(indices) == len(samples) and None not in indices:
        chosen = [indices[place] for place in places]
        while isinstance(dataset, Subset):
            chosen = [dataset.indices[cast("int", i)] for i in chosen]
            dataset = dataset.dataset
        missing, where, how = [str(i) for i in chosen], "index", "__getitem__"
    else:  # Of an iterable data set, which has no indices.
        missing, where, how = [str(one + 1) for one in places], "place in the batch", "__iter__"
    named = ", ".join(missing[:MOST]) + (f" and {len(missing) - MOST} more" * (len(missing) > MOST))
    is_whole = any(one is None for one in samples)
    what = "None as a sample" if is_whole else "a sample with None in it"
    left_out = "None" if is_whole else "such samples"
    return (
        f"{type(dataset).__name__} gave {what}, {where} {named}: let every path through its {how} "
        f"return a {'sample' if is_whole else 'whole sample'}, or leave {left_out} out in "
        "collate_fn."
    )


def _indices(group: object) -> Sequence[object]:
    # Groups of samples with randomness of their own come with more than their indices.
    if isinstance(group, tuple) and group and isinstance(group[0], list):
        return group[0]
    return group if isinstance(group, Sequence) else []


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _frames_of(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def naming(attributes: Mapping[str, object], *, has_workers: bool) -> dict[str, object]:
    """Return attributes of a loader with a collate_fn that names samples that are None.

    In the training process the traceback has all there is, so that nothing is wrapped there.
    """
    if not has_workers or "collate_fn" not in attributes:
        return dict(attributes)
    return {**attributes, "collate_fn": NamingCollate(attributes["collate_fn"])}
