"""What the parts of a checkpoint look like: files may be damaged, or written by strangers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor

from hookloop.checkpoint.state.shape import (
    Each,
    Maybe,
    Named,
    check_state,
    find_mismatch,
    has_same_form,
    is_bytes,
    is_count,
    is_flag,
    is_mapping,
    is_number,
    is_scalar,
    is_text,
    one_of,
)
from hookloop.errors import CheckpointError, HookloopError

LIKE_PARAMETERS = (
    *("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "momentum_buffer", "square_avg"),
    *("grad_avg", "acc_delta", "sum", "prev", "step_size", "ax"),
)
"""What torch's optimizers keep in the shape of a parameter."""

SCHEDULED = (
    *("lr", "initial_lr", "max_lr", "min_lr", "momentum", "base_momentum", "max_momentum"),
    *("betas", "weight_decay"),
)
"""Entries of a group with which schedules compute, whatever the optimizer."""

KEYS_OF_NUMPY = 624
"""Words of the state of the Mersenne Twister."""


def _is_python(value: object) -> bool:
    """Return whether a value is what `random.getstate` returned."""
    if not isinstance(value, list | tuple) or len(value) != 3:
        return False
    version, words, gauss = value
    # Python appends the position in the state to the same 624 words.
    has_words = find_mismatch(words, Each(is_count, KEYS_OF_NUMPY + 1), "") is None
    return (
        type(version) is int
        and version == 3
        and has_words
        and (gauss is None or isinstance(gauss, float))
    )


def _is_numpy(value: object) -> bool:
    """Return whether a value is what `numpy.random.get_state` returned.

    NumPy itself does not check the position.
    """
    if not isinstance(value, list | tuple) or len(value) != 5:
        return False
    kind, words, position, has_gauss, gauss = value
    # A tensor, because `torch.load(weights_only=True)` rejects the arrays of NumPy.
    fits = isinstance(words, Tensor) and words.dtype == torch.uint32
    return (
        isinstance(kind, str)
        and kind == "MT19937"
        and fits
        and tuple(words.shape) == (KEYS_OF_NUMPY,)
        and is_count(position)
        and position <= KEYS_OF_NUMPY
        and is_count(has_gauss)
        and has_gauss <= 1
        and isinstance(gauss, float)
    )


def _is_wanted(value: object) -> bool:
    """Return whether a value says which validation streams are due: all, none, or their names."""
    return is_flag(value) or find_mismatch(value, Each(is_text), "") is None


RANDOMNESS: dict[str, object] = {
    "python": _is_python,
    "numpy": _is_numpy,
    "torch": is_bytes,
    "generators": Each(is_bytes),
    "cuda?": Each(is_bytes),
}
WORKERS: dict[str, object] = {"states": Each(Maybe(is_bytes)), "seeded": Maybe(is_bytes)}
READING: dict[str, object] = {
    "passes": is_count,
    "generators": Each(is_bytes),
    "workers?": WORKERS,
}
SERIES: dict[str, object] = {
    "recent": Each(is_number),
    "pending": Each(is_number),
    "weights": Maybe(Each(is_number)),
    "total": is_number,
    "count": is_number,
    "past?": is_count,
    "marks?": Named(is_count),
    "start?": is_count,
    "at?": Maybe(Each(is_count, 2)),
}
SHAPES: dict[str, object] = {
    "model": is_mapping,
    "optimizers": Named(is_mapping),
    "schedules": Named(is_mapping),
    "scaler?": Maybe(is_mapping),
    "progress": {
        "iter": is_count,
        "epoch": is_count,
        "iter_in_epoch": is_count,
        "stage": one_of("between", "inside", "closing"),
        "validated_at": lambda value: is_count(value) or (type(value) is int and value == -1),
        "validation_due": _is_wanted,
        "validation_planned?": _is_wanted,
        "validated_streams?": Named(is_count),
        "asked_at?": is_count,
        "samples?": Maybe(is_count),
        "tokens?": Maybe(is_count),
        "split?": is_count,
        "left_out?": Each(is_count),
    },
    "val_data": Named(READING),
    "metric_store": Named(SERIES),
    "hooks": Named(is_mapping),
    "rng": Each(RANDOMNESS),
    "workers?": Each(Named(WORKERS)),
    "side_randomness?": is_mapping,
    "undeclared?": Named(is_mapping),
    "undeclared_of_ranks?": Each(is_mapping),
    "kinds?": is_mapping,
    "arguments?": is_mapping,
    "changes?": Each(is_mapping),
    "config?": is_mapping,
    "environment?": Named(is_count),
}
DATA: dict[str, object] = {
    **READING,
    "position": is_count,
    "samples?": Maybe(is_count),
    "samples_before?": is_count,
    "began": Maybe(RANDOMNESS),
    "loader": is_mapping,
    "measures?": Named(lambda value: value is None or isinstance(value, bool | int | float | str)),
    "orders?": is_mapping,
    "replaced?": is_flag,
    "next_replaced?": is_flag,
}
"""What the training data keeps, if a run has any."""

MIXED: dict[str, object] = {
    "way": is_text,
    "position": is_count,
    "is_over": is_flag,
    "current": is_text,
    "key": Maybe(is_count),
    "drawn": is_count,
    "weights": Maybe(Named(is_number)),
    "streams": Named(DATA),
}
"""What several streams of training data keep."""


def check_shapes(checkpoint: Mapping[str, object], label: str, *, has_data: bool) -> None:
    """Reject a checkpoint whose parts are not what a run saves."""
    data = checkpoint.get("data")
    is_mixed = isinstance(data, Mapping) and "streams" in data
    shapes = {**SHAPES, "data": MIXED if is_mixed else DATA} if has_data else SHAPES
    found = find_mismatch(checkpoint, shapes, "")
    if found is None:
        return
    part = found.removeprefix(".")
    what = f"has no '{part}'" if part not in checkpoint and "." not in part else None
    raise CheckpointError(
        f"'{label}' {what or f'has a {part!r} that is not what a run saves'}, so it cannot be "
        "resumed; its weights can be taken with load_from=."
    )


def check_optimizer(optimizer: torch.optim.Optimizer, state: object) -> None:
    """Reject a state that torch would take, to fail at the next update.

    An optimizer that wraps others, or keeps a state of its own form, checks it by itself.
    """
    if type(optimizer).state_dict is not torch.optim.Optimizer.state_dict:
        return
    groups = {"param_groups": Each({"params": Each(is_count)}), "state": is_mapping}
    check_state(state, groups)
    given = cast("dict[str, list[dict[str, object]]]", state)["param_groups"]
    shapes: dict[object, object] = {}
    # Not strict: torch itself rejects another number of groups or of parameters, and explains it.
    for index, (one, own) in enumerate(zip(given, optimizer.param_groups, strict=False)):
        wrong = [name for name in one if name in own and not _fits(optimizer, name, one, own)]
        if wrong:
            raise ValueError(f"'param_groups[{index}].{wrong[0]}' is not what was saved")
        numbers = cast("list[int]", one["params"])
        shapes |= zip(numbers, [tuple(p.shape) for p in own["params"]], strict=False)
    # Other optimizers may use the same names for something of another shape.
    if _is_of_torch(optimizer):
        kept = cast("dict[str, dict[int, object]]", state)["state"]
        for number, values in kept.items():
            _check_kept(values, f"state[{number}]", shapes.get(number))


def _is_of_torch(optimizer: torch.optim.Optimizer) -> bool:
    return type(optimizer).__module__.startswith("torch.optim.")


def _fits(
    optimizer: torch.optim.Optimizer,
    name: str,
    saved: Mapping[str, object],
    own: Mapping[str, object],
) -> bool:
    """Return whether torch can compute with an entry of a group; a user's may be anything."""
    is_known = name in SCHEDULED or (_is_of_torch(optimizer) and name in optimizer.defaults)
    if not is_known or name == "params":
        return True
    one, other = saved[name], own[name]
    if (is_scalar(one) or is_number(one)) and (is_scalar(other) or is_number(other)):
        return True  # A rate may be a tensor now and have been a number before.
    return has_same_form(one, other)


def _check_kept(values: object, path: str, shape: object) -> None:
    """Check what an optimizer of torch keeps for a parameter."""
    if not isinstance(values, Mapping):
        raise ValueError(f"'{path}' is not what was saved")
    for name, value in values.items():
        if name == "step" and not (is_number(value) or is_scalar(value)):
            raise ValueError(f"'{path}.step' is not what was saved")
        is_known = name in LIKE_PARAMETERS and value is not None and shape is not None
        if is_known and not (isinstance(value, Tensor) and tuple(value.shape) == shape):
            raise ValueError(f"'{path}.{name}' does not fit its parameter")


@contextmanager
def restoring(part: str, label: str) -> Iterator[None]:
    """Report whatever goes wrong with a part as a problem of the file that it comes from."""
    try:
        yield
    # It names the file already.
    except HookloopError:
        raise
    except Exception as error:
        # Messages of torch may have many lines, of which the first names the problem.
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise CheckpointError(
            f"'{label}' cannot be resumed: its {part} cannot be restored ({reason})."
        ) from error
