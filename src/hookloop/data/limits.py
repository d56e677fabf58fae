"""How much of its data a run reads: ``limit=`` and ``overfit=``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import cast

from hookloop.data.group_sizes import Accumulate, GroupSizes
from hookloop.data.mixing.mixture import TrainingStream, open_train_data
from hookloop.data.mixing.weights import Mix
from hookloop.data.mixing.zipped import Zipped, check_val_mix
from hookloop.data.reading.exactness import SeedSamples
from hookloop.data.reading.first_batches import first_batches
from hookloop.data.stream import Batches, Stream, open_streams
from hookloop.errors import DataError, caused_by, nearest

TrainData = Batches | Mapping[str, Batches]
Streams = TrainData | None
Limit = Mapping[str, int]

PHASES = ("train", "val", "test")

_log = logging.getLogger("hookloop")


def check_limit(limit: object) -> None:
    """Reject a limit of something else than the phases, or that is not a whole number above 0."""
    if not isinstance(limit, Mapping):
        raise DataError(
            f"limit={limit!r}: it must map phases to numbers, limit={{'train': 100, 'val': 10}}.",
            argument="limit",
        )
    for phase, count in limit.items():
        if phase not in PHASES:
            raise DataError(
                f"limit: there is no phase '{phase}'.{nearest(str(phase), PHASES)} There are "
                f"{', '.join(PHASES)}.",
                argument="limit",
            )
        check_batches(f"limit['{phase}']", count, "limit")


def check_batches(name: str, count: object, argument: str) -> None:
    """Reject what is not a whole number above 0."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise DataError(
            f"{name}={count!r}: it must be a whole number, at least 1.", argument=argument
        )


class DataLimits:
    """Opens the data of a run, as much of it as is to be read.

    Args:
        limit: From phases to the most iterations of an epoch (train), or batches of each stream of
            an evaluation (val, test).
        overfit: Train and validate on so many batches of the training data, the same in each epoch.
        seed_samples: As for `Stream`.
    """

    def __init__(
        self, limit: Limit | None, overfit: int | None, seed_samples: SeedSamples = True
    ) -> None:
        self._limit = limit or {}
        self._overfit = overfit
        self._seed_samples = seed_samples
        self._first: list[object] | None = None

    def epoch_iters(
        self, given: int | None, data: TrainData | None, accumulate: Accumulate
    ) -> int | None:
        """Return the iterations of an epoch of fixed size, within the limit; None without one."""
        most = self._limit.get("train")
        # Where streams are mixed, or iterations change their size, no number of batches is the
        # limit. Then it is one of iterations, and passes continue in the next epoch.
        is_counted = isinstance(data, Mapping) or not GroupSizes(accumulate).is_constant
        if most is None or (given is None and not is_counted):
            return given
        return most if given is None else min(given, most)

    def train(
        self,
        data: TrainData | None,
        accumulate: Accumulate,
        epoch_iters: int | None,
        *,
        mix: Mix | None = None,
        seed: int | None = None,
    ) -> TrainingStream | None:
        """Open the training data.

        Args:
            data: What was given.
            accumulate: Batches per iteration.
            epoch_iters: Iterations of an epoch of fixed size; None where the data decides.
            mix: How several streams are mixed.
            seed: Seed of what is drawn to mix them.
        """
        if data is None:
            return None
        limit = self._limit.get("train") if epoch_iters is None else None
        if isinstance(data, Mapping) or mix is not None:
            if self._overfit is not None:
                raise DataError(
                    "overfit= needs one stream of training data: give one of the streams, "
                    "without mix=.",
                    argument="overfit",
                )
        else:
            with caused_by("train_data"):
                data = self._batches_of(data)
        return open_train_data(
            data,
            mix,
            seed=seed,
            seed_samples=self._seed_samples,
            limit=None if limit is None else limit * GroupSizes(accumulate).first,
        )

    def val(self, data: Streams, mix: str | None = None) -> dict[str, Stream]:
        """Open the validation data; where one overfits, each stream is the training data.

        With ``mix="zip"``, several streams are read side by side, as one.
        """
        check_val_mix(mix)
        if self._first is not None and data is not None:
            names = data if isinstance(data, Mapping) else None
            first = cast("Batches", self._first)
            data = first if names is None else dict.fromkeys(names, first)
        return self._open(_zip(data, mix), "val")

    def test(self, data: Streams, mix: str | None = None) -> dict[str, Stream]:
        """Open the test data; for ``mix`` see `val`."""
        return self._open(_zip(data, mix), "test")

    def predict(self, data: Streams) -> dict[str, Stream]:
        """Open the data to predict, which has no limit."""
        return self._open(data, "predict")

    def warn(self) -> None:
        """Report that the training sees a few batches only."""
        if self._first is not None:
            _log.warning(
                "overfit=%d: the training and the validation read the same %d batches in every "
                "epoch, without shuffling.",
                self._overfit,
                len(self._first),
            )

    def _batches_of(self, data: Batches) -> Batches:
        if self._overfit is None:
            return data
        self._first = first_batches(data, self._overfit)
        return self._first

    def _open(self, data: Streams, phase: str) -> dict[str, Stream]:
        limit = self._limit.get(phase)
        return open_streams(data, f"{phase}_data", seed_samples=self._seed_samples, limit=limit)


def _zip(data: Streams, mix: str | None) -> Streams:
    return Zipped(data) if mix == "zip" and isinstance(data, Mapping) else data
