"""Several streams of evaluation data that are read side by side, as ``mix="zip"`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from torch.utils.data import DataLoader

from hookloop.data.position.measures import length_of
from hookloop.data.reading.samplers import SamplerStates, samplers_of
from hookloop.errors import DataError


class Zipped:
    """Batches that are mappings with a batch of each stream, until the shortest ends.

    >>> list(Zipped({"a": [1, 2], "b": [3]}))
    [{'a': 1, 'b': 3}]
    """

    def __init__(self, streams: Mapping[str, Iterable[object]]) -> None:
        self.streams = dict(streams)

    def bookmark(self) -> Callable[[], None]:
        """Return what undoes the passes that are read from now on, but for random generators."""
        loaders = [one for one in self.streams.values() if isinstance(one, DataLoader)]
        new = [one for one in loaders if one._iterator is None]
        samplers = [SamplerStates(samplers_of(one)) for one in loaders]
        kept = [(one, one.whole()) for one in samplers]

        def put_back() -> None:
            for loader in new:  # Persistent workers draw their seed when they are started.
                loader._iterator = None
            for sampler, states in kept:
                sampler.restore(states)

        return put_back

    def __len__(self) -> int:
        """Count the batches, where all streams have a length."""
        lengths = [length_of(stream) for stream in self.streams.values()]
        known = [length for length in lengths if length is not None]
        if len(known) != len(lengths):
            raise TypeError("a stream has no length")
        return min(known, default=0)

    def __iter__(self) -> Iterator[object]:
        """Begin each of them again."""
        for batches in zip(*self.streams.values(), strict=False):
            yield dict(zip(self.streams, batches, strict=True))


def check_val_mix(mix: object) -> None:
    """Reject another way to read evaluation data than ``"zip"``."""
    if mix not in (None, "zip"):
        raise DataError(
            f"val_mix={mix!r}: write 'zip', for a batch of each stream at once, or leave it out, "
            "which evaluates each stream by itself.",
            argument="val_mix",
        )
