"""What MMEngine keeps in a checkpoint, as the plain values that our files hold, and back.

Its own files hold pickled histories and arrays, which today's torch rejects when it loads them. The
form here is that of the alias, so files of both can be exchanged.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from hookloop_mmengine.runner.checkpoint import Held

_PLAIN = (Tensor, bool, int, float, complex, str, bytes, torch.dtype, torch.device)
_HISTORY = {"values", "counts", "max_length"}


def to_plain(value: object) -> object:
    """Return a value of a hook, a config or a message hub as plain containers.

    What cannot be expressed, such as an object of a project, becomes its text.

    >>> to_plain({"classes": ("cat",), "palette": np.zeros((1, 2), int)})
    {'classes': ('cat',), 'palette': [[0, 0]]}
    """
    if isinstance(value, np.generic | np.ndarray):  # First: some of them are numbers of Python's.
        return value.tolist()
    if isinstance(value, _PLAIN) or value is None:
        return value
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, tuple):
        return tuple(map(to_plain, value))
    if isinstance(value, list | deque | set | frozenset):
        return list(map(to_plain, value))
    return str(value)


def _mapping(value: Mapping[object, object]) -> dict[object, object]:
    plain = OrderedDict((key, to_plain(part)) for key, part in value.items())
    if not hasattr(value, "_metadata"):
        return dict(plain)
    vars(plain)["_metadata"] = value._metadata  # A model's: torch reads the versions from here.
    return plain


def plain_hub(state: Mapping[str, Any]) -> dict[str, object]:
    """Return the state of a message hub in plain containers."""
    scalars = {key: _history_state(one) for key, one in state["log_scalars"].items()}
    return {**{key: to_plain(part) for key, part in state.items()}, "log_scalars": scalars}


def _history_state(history: Any) -> object:  # noqa: ANN401 - mmengine's HistoryBuffer
    if not hasattr(history, "data"):  # A file that was read and is written again.
        return to_plain(history)
    values, counts = history.data
    return {
        "values": torch.tensor(np.asarray(values), dtype=torch.float64),
        "counts": torch.tensor(np.asarray(counts), dtype=torch.float64),
        "max_length": history.max_length,
    }


def with_histories(checkpoint: dict[str, object]) -> dict[str, object]:
    """Give a checkpoint that was read from one of our files its histories back."""
    hub = checkpoint.get("message_hub")
    if not isinstance(hub, Mapping) or not isinstance(hub.get("log_scalars"), Mapping):
        return checkpoint
    scalars = {key: _history(one) for key, one in hub["log_scalars"].items()}
    return {**checkpoint, "message_hub": {**hub, "log_scalars": scalars}}


def without_functions(checkpoint: dict[str, object]) -> dict[str, object]:
    """Leave out the functions that MMEngine's files hold in states of schedulers.

    ``OneCycleLR`` has one, which it gets from its arguments.
    """
    states = checkpoint.get("param_schedulers")
    return checkpoint if states is None else {**checkpoint, "param_schedulers": _usable(states)}


def _usable(state: object) -> object:
    if isinstance(state, Mapping):
        kept = {key: one for key, one in state.items() if not callable(one)}
        return {key: _usable(one) for key, one in kept.items() if not isinstance(one, Held)}
    return list(map(_usable, state)) if isinstance(state, list) else state


def _history(state: object) -> object:
    """Make a history from its numbers, of our form or of MMEngine's own."""
    from mmengine.logging import HistoryBuffer

    if isinstance(state, Held) and isinstance(state.state, Mapping):  # In a file of MMEngine.
        names = ("_log_history", "_count_history", "max_length")
        if not set(names) <= set(state.state):
            return state
        values, counts, longest = (state.state[name] for name in names)
    elif isinstance(state, Mapping) and set(state) == _HISTORY:
        values, counts = (cast("Tensor", state[name]).numpy() for name in ("values", "counts"))
        longest = state["max_length"]
    else:
        return state
    made = HistoryBuffer(max_length=longest)
    # Past the constructor, which would turn an empty history into another type of numbers.
    made._log_history, made._count_history = np.array(values), np.array(counts)
    return made
