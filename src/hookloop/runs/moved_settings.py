"""Where settings of earlier versions are now: configs of their runs are converted when read."""

from __future__ import annotations

from collections.abc import Mapping

MOVED: Mapping[str, tuple[str, str]] = {
    "test_data": ("data", "test"),
    "predict_data": ("data", "predict"),
    "mix": ("data", "mix"),
    "val_mix": ("data", "val_mix"),
    "limit": ("data", "limit"),
    "overfit": ("data", "overfit"),
    "epoch_iters": ("data", "epoch_iters"),
    "seed_samples": ("data", "seed_samples"),
    "count_tokens": ("data", "count_tokens"),
    "val_begin": ("val_every", "begin"),
    "val_at_start": ("val_every", "at_start"),
    "load_from": ("setup", "load_from"),
    "prepare": ("setup", "prepare"),
    "deterministic": ("setup", "deterministic"),
    "matmul": ("setup", "matmul"),
    "points": ("setup", "points"),
}
"""From the settings of version 0.2 to the group and the name under which they are now."""

NAMED = "imports custom_imports import_path vars"
"""Keys of a config whose values are not settings."""

_EVERY = ("every", "begin", "at_start")


def moved(tree: Mapping[str, object]) -> dict[str, object]:
    """Return a config, or the kept arguments of a run, with its settings where they are now.

    What is there already is kept as it is, so that it may be called for any version.

    >>> moved({"limit": {"val": 3}, "seed": 1, "val_every": 100, "val_begin": 5})
    {'seed': 1, 'val_every': {'every': 100, 'begin': 5}, 'data': {'limit': {'val': 3}}}
    """
    now = {name: value for name, value in tree.items() if name not in MOVED}
    for old, (group, name) in MOVED.items():
        if old not in tree or (group == "val_every" and not tree[old]):
            continue
        held = now.get(group)
        if group == "val_every" and not is_group(held):
            held = {"every": held} if held is not None else {}
        now[group] = {**(held if isinstance(held, Mapping) else {}), name: tree[old]}
    return now


def is_group(val_every: object) -> bool:
    """Return whether a value of ``val_every`` says more than the interval, or one for each stream.

    >>> is_group({"every": 100, "begin": 5}), is_group({"small": "1 epoch"}), is_group(100)
    (True, False, False)
    """
    return isinstance(val_every, Mapping) and any(name in val_every for name in _EVERY)


def moved_key(key: str) -> str:
    """Return the key of a setting, as ``read_config`` writes it, where the setting is now.

    >>> moved_key("limit.val"), moved_key("optimizer.lr")
    ('data.limit.val', 'optimizer.lr')
    """
    first, dot, rest = key.partition(".")
    return f"{'.'.join(MOVED[first])}{dot}{rest}" if first in MOVED else key
