"""``mmengine.utils.misc``: lists, tuples and what is in them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

T = TypeVar("T")


def is_seq_of(
    seq: object, expected_type: type | tuple[type, ...], seq_type: type | None = None
) -> bool:
    """Return whether a value is a sequence whose entries are all of a type."""
    kind = seq_type or Sequence
    return isinstance(seq, kind) and all(isinstance(entry, expected_type) for entry in seq)  # type: ignore[attr-defined]


def is_list_of(seq: object, expected_type: type | tuple[type, ...]) -> bool:
    """Return whether a value is a list of a type."""
    return is_seq_of(seq, expected_type, list)


def is_tuple_of(seq: object, expected_type: type | tuple[type, ...]) -> bool:
    """Return whether a value is a tuple of a type."""
    return is_seq_of(seq, expected_type, tuple)


def to_ntuple(n: int) -> Callable[[object], Iterable[object]]:
    """Return a function that repeats a value n times; an iterable stays as it is."""

    def repeated(x: object) -> Iterable[object]:
        return x if isinstance(x, Iterable) else (x,) * n

    return repeated


to_1tuple, to_2tuple, to_3tuple, to_4tuple = (to_ntuple(n) for n in range(1, 5))


def iter_cast(
    inputs: Iterable[object],
    dst_type: Callable[..., T],
    return_type: Callable[[Iterator[T]], object] | None = None,
) -> object:
    """Convert the entries of an iterable; an iterator, unless ``return_type`` is given."""
    if not isinstance(inputs, Iterable):
        raise TypeError("inputs must be an iterable object")
    if not isinstance(dst_type, type):
        raise TypeError('"dst_type" must be a valid type')
    converted = map(cast("Callable[..., T]", dst_type), inputs)
    return converted if return_type is None else return_type(converted)


def list_cast(inputs: Iterable[object], dst_type: Callable[..., T]) -> list[T]:
    """Convert the entries of an iterable and return a list."""
    return cast("list[T]", iter_cast(inputs, dst_type, list))


def tuple_cast(inputs: Iterable[object], dst_type: Callable[..., T]) -> tuple[T, ...]:
    """Convert the entries of an iterable and return a tuple."""
    return cast("tuple[T, ...]", iter_cast(inputs, dst_type, tuple))


def slice_list(in_list: list[T], lens: int | list[int]) -> list[list[T]]:
    """Cut a list into lists of some lengths, or of one length.

    >>> slice_list([1, 2, 3], [1, 2])
    [[1], [2, 3]]
    """
    if isinstance(lens, int):
        if len(in_list) % lens:
            raise AssertionError(f"{len(in_list)} entries cannot be cut into lists of {lens}")
        lens = [lens] * (len(in_list) // lens)
    if not isinstance(lens, list):
        raise TypeError('"indices" must be an integer or a list of integers')
    if sum(lens) != len(in_list):
        raise ValueError(
            f"sum of lens and list length does not match: {sum(lens)} != {len(in_list)}"
        )
    entries = iter(in_list)
    return [list(itertools.islice(entries, length)) for length in lens]


def concat_list(in_list: Iterable[Iterable[T]]) -> list[T]:
    """Join several lists."""
    return list(itertools.chain(*in_list))


def apply_to(
    data: Any,  # noqa: ANN401 - a batch of any kind
    expr: Callable[[Any], bool],
    apply_func: Callable[[Any], object],
) -> Any:  # noqa: ANN401 - as it came
    """Apply a function to those values in nested dicts, lists and tuples that fit."""
    if isinstance(data, dict):
        changed = type(data)()
        for key, value in data.items():
            changed[key] = apply_to(value, expr, apply_func)
        return changed
    if isinstance(data, tuple | list):
        inner = (apply_to(value, expr, apply_func) for value in data)
        return type(data)(*inner) if hasattr(data, "_fields") else type(data)(inner)
    return apply_func(data) if expr(data) else data
