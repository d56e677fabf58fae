"""What is in the output of a model or a step, and notes for errors that it raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hookloop.data.advice import note_fix
from hookloop.data.batch import is_pair, pair_of
from hookloop.data.description import note_batch, note_module

if TYPE_CHECKING:
    from hookloop.engine.run import Run


def note_error(error: Exception, run: Run, *output: object) -> None:
    """Add to an error of the model or the loss where and why it was raised, with which batch."""
    note_batch(error, run.phase, run.progress.iter, run.batch, *output)
    note_module(error, run.model)
    note_fix(error)
    is_call = isinstance(error, TypeError) and "forward() " in str(error)
    given = (run._internals.loss_function, run._internals.step_function)
    if is_call and given == (None, None):
        error.add_note(
            "Without loss= and step=, the model is called with all parts of a batch and returns "
            "its loss: give loss=, unless that is meant."
        )


def targets_of(run: Run) -> object:
    """Return what metrics compare the output with: targets, or whatever batch a step gets."""
    is_known = run._internals.loss_function is not None or is_pair(run.batch)
    return pair[1] if is_known and (pair := pair_of(run.batch)) else run.batch


def output_of(output: object) -> object:
    """Return what metrics look at: the ``output`` entry of a step's mapping, or all of it."""
    return output["output"] if isinstance(output, Mapping) and "output" in output else output
