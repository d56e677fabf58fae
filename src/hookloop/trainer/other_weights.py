"""Give a run other weights for a while, and put its own back, bit for bit."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hookloop.checkpoint.choose import BEST, BestCheckpoint, choose
from hookloop.checkpoint.state.pretrained import Pretrained
from hookloop.checkpoint.store.store import load
from hookloop.errors import CheckpointError, HookloopError
from hookloop.hooks.saving.save_checkpoint import SaveCheckpoint
from hookloop.hooks.weights.average_weights import AverageWeights
from hookloop.trainer.state.parts import (
    holding_weights,
    restore_buffers,
    restore_model,
    undeclared_of_rank,
)
from hookloop.trainer.state.run_state import RunState

if TYPE_CHECKING:
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")


class OtherWeights:
    """The weights of a checkpoint, in a model whose own are kept aside until `put_back`.

    Averaged weights, which belong to a hook, are exchanged too.

    Args:
        run: The run.
        which: The checkpoint: ``"best"``, ``"last"``, a name or a path. The first rank decides
            which one that is.
    """

    def __init__(self, run: Run, which: str | Path) -> None:
        chosen = None
        if run.world.is_main:
            watched = [h.best_metrics for h in run.hooks if isinstance(h, SaveCheckpoint)]
            first = next((metrics[0] for metrics in watched if metrics), None)
            chosen = choose(run.dir, which, run.stores, first)
        self.label = label = run._internals.ranks.share(chosen.path if chosen is not None else "")
        checkpoint = chosen.content if chosen is not None else load(label)
        self._run = run
        self._put_back = [RunState(run).keep("model", "hooks")]
        try:
            self._load(label, checkpoint)
        except BaseException:
            self.put_back()
            raise

    def _load(self, label: str, checkpoint: Mapping[str, object]) -> None:
        run, weights = self._run, checkpoint.get("model")
        if not isinstance(weights, Mapping):  # A file of weights alone, in one of several forms.
            Pretrained(label).load_into(run.model)
        else:
            restore_model(run.model, weights, label)
            restore_buffers(run, checkpoint, label)
            state = undeclared_of_rank(run, checkpoint)
            self._put_back.append(run._internals.undeclared.lend(state, label))
        states = checkpoint.get("hooks")
        states = states if isinstance(states, Mapping) else {}
        for hook in holding_weights(run):
            empty: dict[str, object] = {"teacher": {}}
            if isinstance(hook, AverageWeights):  # Then the weights themselves are evaluated.
                empty = {"updates": 0, "averaged": {}, "warmup": hook.warmup}
            hook.load_state_dict(cast("Mapping[str, object]", states.get(hook.name, empty)))

    def put_back(self) -> None:
        """Give the model and the hooks what they had."""
        for one in reversed(self._put_back):
            one()


@contextmanager
def using_checkpoint(run: Run, which: str | Path | None) -> Iterator[None]:
    """Evaluate with the weights of a checkpoint; with None, with those of the run."""
    if which is None:
        yield
        return
    other = OtherWeights(run, which)
    _log.info("Evaluating '%s'.", other.label)
    try:
        yield
    finally:
        other.put_back()


def best_of(run: Run) -> tuple[BestCheckpoint, ...]:
    """List the best checkpoints that a run keeps, the most important first."""
    hooks = [hook for hook in run.hooks if isinstance(hook, SaveCheckpoint)]
    try:
        return tuple(best for hook in hooks for best in hook.best_checkpoints(run))
    except (OSError, HookloopError) as error:  # The run has ended, and nothing of it is lost.
        _log.warning("The best checkpoints of '%s' cannot be listed: %s", run.dir, error)
        return ()


def load_best(run: Run) -> OtherWeights | None:
    """Put the best weights into the model, if a `SaveCheckpoint` of the run says so."""
    hooks = [h for h in run.hooks if isinstance(h, SaveCheckpoint) and h.load_best]
    if not hooks or run.is_interrupted:
        return None
    try:
        return OtherWeights(run, BEST)
    except CheckpointError as error:  # The training is done, and its last weights are saved.
        _log.warning("The model keeps its last weights, not the best: %s", error)
        return None
