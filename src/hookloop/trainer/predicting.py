"""Predict: what the model gets of a batch, and where its outputs go."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.data.batch import size_of
from hookloop.data.model_inputs import inputs_for
from hookloop.data.outputs import by_name, join, to_cpu
from hookloop.data.stream import Batches, Stream
from hookloop.errors import DataError, nearest
from hookloop.hooks.metrics.accumulate_variables import to_array
from hookloop.update.objective import forward_step
from hookloop.update.update import Step, Update
from hookloop.writers.predictions import check_file, writing

_log = logging.getLogger("hookloop")

if TYPE_CHECKING:
    from torch import nn

    from hookloop.engine.loop import Loop
    from hookloop.engine.run import Run

Target = str | Path | Callable[[Any], object] | None
"""Where predictions go: to a file, to a function that gets each output, or to the caller."""


def call_model(model: nn.Module, batch: object, *, has_loss: bool) -> object:
    """Call the model on the inputs of a batch; the arguments are those of `inputs_for`."""
    args, named = inputs_for(model, batch, has_loss=has_loss)
    return model(*args, **named)


def make_update(
    step: Step | None, context: AbstractContextManager[None] | None, *, has_loss: bool
) -> Update:
    """Return what computes the output of a batch, and no loss."""

    def forward(run: Run) -> object:
        return call_model(run.model, run.batch, has_loss=has_loss)

    update = Update("", forward if step is None else forward_step(step), None, ())
    update.compute_within(context)
    return update


def open_data(run: Run, data: Batches | str | None) -> Stream:
    """Make a source of data to predict: batches, a tensor as one batch, or a stream by its name."""
    if data is None:
        return _only_stream(run)
    batches: Batches = data
    if isinstance(data, str):
        batches = _named_stream(run, data)
    elif isinstance(data, Tensor | np.ndarray):
        batches = [torch.as_tensor(data)]
    elif isinstance(data, Mapping):
        raise DataError(
            "predict() takes one stream of batches, not a mapping: call it for each of "
            f"{', '.join(map(str, data)) or 'none'}, or put a single batch into a list."
        )
    source = Stream(batches, data if isinstance(data, str) else "predict_data")
    if not run.world.is_alone:
        source.share_among(run.world.data_rank, run.world.data_size, is_training=False)
    return source


def _only_stream(run: Run) -> Stream:
    if not run._internals.predict_data:
        raise DataError("There is nothing to predict: give predict(data), or predict_data=.")
    if len(run._internals.predict_data) > 1:
        names = ", ".join(f"'predict_data.{name}'" for name in run._internals.predict_data)
        raise DataError(f"predict_data= has several streams: give predict() one of {names}.")
    return next(iter(run._internals.predict_data.values()))


def _named_stream(run: Run, name: str) -> Batches:
    streams = {
        f"{kind}.{key}" if key else kind: source
        for kind, sources in (
            ("val_data", run.val_data),
            ("test_data", run._internals.test_data),
            ("predict_data", run._internals.predict_data),
        )
        for key, source in sources.items()
    }
    if name not in streams:
        listed = ", ".join(streams) or "none"
        raise DataError(
            f"There is no stream '{name}' to predict.{nearest(name, streams)} There are: {listed}."
        )
    # The data alone: the position of a validation stream belongs to the training.
    return streams[name].data


class Predictions:
    """Collects the outputs for all batches, and puts them where they are wanted.

    Args:
        run: The run.
        to: A file, a function, or None for the caller.
    """

    def __init__(self, run: Run, to: Target) -> None:
        self._run = run
        self._to = Path(to) if isinstance(to, str | Path) else to
        if isinstance(self._to, Path):
            check_file(self._to)
        self._parts: list[tuple[int, object, int]] = []
        self._left_out: set[str] = set()

    def make(self, loop: Loop, update: Update) -> object:
        """Predict, and return the outputs, or the file that has them."""
        run, to = self._run, self._to
        if not run.world.is_alone:  # Each rank has a part of each batch.
            return self._make_together(loop, update)
        if isinstance(to, Path):
            with writing(to) as file:
                loop.evaluation.predict(
                    update,
                    lambda run: file.add(self._arrays(to_cpu(run.output), size_of(run.batch))),
                )
                file.is_whole = not run.is_interrupted
            self._tell_what_is_missing(to)
            return to
        if to is not None:
            loop.evaluation.predict(update, self._hand_over)
            return None
        loop.evaluation.predict(update, self._keep)
        return None if run.is_interrupted else self._joined(self._parts)

    def _make_together(self, loop: Loop, update: Update) -> object:
        run, to = self._run, self._to
        loop.evaluation.predict(update, self._keep)
        if run.is_interrupted:
            return None
        # By batch and rank, which is the order of the data: ranks cut each batch in their order.
        of_ranks = run.gather(self._parts)[:: run.world.tensor]
        parts = sorted((part for parts in of_ranks for part in parts), key=lambda part: part[0])
        if to is None:
            return self._joined(parts)
        if not run.world.is_main:
            return to if isinstance(to, Path) else None
        if not isinstance(to, Path):
            for _, output, _ in parts:
                to(output)
            return None
        with writing(to) as file:
            for _, output, size in parts:
                file.add(self._arrays(output, size))
            file.is_whole = True
        self._tell_what_is_missing(to)
        return to

    def _hand_over(self, run: Run) -> None:
        cast("Callable[[object], object]", self._to)(run.output)

    def _keep(self, run: Run) -> None:
        number = run.place.batch if run.place is not None else len(self._parts)
        self._parts.append((number, to_cpu(run.output), size_of(run.batch)))

    def _joined(self, parts: list[tuple[int, object, int]]) -> object:
        return join([output for _, output, _ in parts], [size for _, _, size in parts])

    def _arrays(self, output: object, size: int) -> dict[str, np.ndarray[Any, Any]]:
        named = by_name(output, size, self._left_out)
        if not named:
            raise DataError(
                "The output has no part with an entry per sample: there is nothing to write."
            )
        return {name: to_array(cast("Any", part)) for name, part in named.items()}

    def _tell_what_is_missing(self, file: Path) -> None:
        # The loss that a model returns beside its output, and its weight, are no predictions.
        if missing := sorted(self._left_out - {"loss", "weight"}):
            _log.warning(
                "Left out of '%s', because it has no row per sample: %s.", file, ", ".join(missing)
            )
