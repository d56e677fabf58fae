"""``emloop.datasets.stream_wrapper``: a stream that can be read again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Self

from hookloop_dialects.emloop.types import Batch, Stream, TimeProfile


class StreamWrapper:
    """A stream that begins again at its end, cut into epochs.

    Args:
        stream_fn: Returns the batches.
        buffer_size: Not used: the engine's loaders read ahead.
        epoch_size: Batches per epoch; not positive for all that ``stream_fn`` returns.
        name: The name of the stream.
        profile: Not used: the engine measures.
    """

    def __init__(
        self,
        stream_fn: Callable[[], Stream],
        buffer_size: int = 0,
        epoch_size: int = -1,
        name: str | None = None,
        profile: TimeProfile | None = None,
    ) -> None:
        self._stream_fn = stream_fn
        self._epoch_size = epoch_size
        self.name = name
        self._batches: Iterator[Batch] | None = None
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: there is no thread to end."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        if 0 < self._epoch_size <= self._count:
            self._count = 0
            raise StopIteration
        batch = self._read()
        if batch is None and self._epoch_size > 0:  # The stream has ended, the epoch has not.
            batch = self._read()
        if batch is None:
            self._count = 0
            raise StopIteration
        self._count += 1
        return batch

    def _read(self) -> Batch | None:
        if self._batches is None:
            self._batches = iter(self._stream_fn())
        batch = next(self._batches, None)
        if batch is None:
            self._batches = None  # The next call begins again.
        return batch

    @property
    def allow_buffering(self) -> AbstractContextManager[None]:
        """A context in which a buffer may be filled; there is none here."""
        return nullcontext()
