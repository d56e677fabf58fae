"""The questions about names that several rooms ask, each with its one answer.

Which metrics measure the machine, which value of a metric is better, and what a key of a config
means when runs are compared. Imports no torch, because runs on disk are read without it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from hashlib import sha256
from math import isfinite
from operator import itemgetter
from typing import Literal

from hookloop.runs.records import to_json

# --- which metrics measure the machine ------------------------------------------------------------


class Machine(str):
    """The name of a metric that measures the machine and differs between two equal runs.

    A hook declares it among what it writes: ``writes = (Machine("train/fan_speed"),)``. The name
    may be a pattern with ``*``.
    """

    __slots__ = ()


_OF_MACHINE = re.compile(
    r"(^|[/_])(time|seconds|memory|throughput|mfu|flops|power|temperature)($|[/_])"
    r"|per_second|^(device|system)/"
)
"""Names that usually measure the machine, for runs and hooks that do not declare them."""

_NOT_OF_MACHINE = frozenset(("model/flops",))
"""Names that look like it and count the model instead."""

EPOCH = "train_epoch/"
"""What the name of the mean over an epoch begins with."""

_CLOCKS = frozenset(("seconds", "started", "begun", "run_id"))


def is_of_machine(name: str, declared: Collection[str] = ()) -> bool:
    """Return whether a metric measures the machine, so that equal runs differ in it.

    Args:
        name: The full name of the metric.
        declared: Names and patterns that the hooks of the run have declared as such.

    >>> is_of_machine("train/iter_time"), is_of_machine("device/gpu0/power")
    (True, True)
    >>> is_of_machine("val/loss"), is_of_machine("val/fan_speed", ["val/fan_*"])
    (False, True)
    """
    # The mean over an epoch measures what each of its values does.
    by_iter = f"train/{name.removeprefix(EPOCH)}" if name.startswith(EPOCH) else name
    if any(fnmatchcase(one, pattern) for one in (name, by_iter) for pattern in declared):
        return True
    return _OF_MACHINE.search(name) is not None and name not in _NOT_OF_MACHINE


def machine_names(written: Iterable[str]) -> list[str]:
    """Return which of the names that hooks write are declared as measuring the machine.

    >>> machine_names(["train/loss", Machine("train/iter_time")])
    ['train/iter_time']
    """
    return sorted({str(name) for name in written if isinstance(name, Machine)})


def is_clock(key: str, machine: Collection[str] = ()) -> bool:
    """Return whether an entry of a state measures time or names a process.

    Metrics that a state holds are judged by `is_of_machine`.

    >>> is_clock("seconds"), is_clock("train/iter_time"), is_clock("memory")
    (True, True, False)
    """
    return key in _CLOCKS or key.endswith("_time") or ("/" in key and is_of_machine(key, machine))


# --- what a key of a config means when runs are compared ------------------------------------------

OF_ONE_DIRECTORY = ("import_path", "run_dir", "resume")
"""Keys that depend on where a run is. They are no part of the hash of a published config."""

LABELS = ("name", "tags", "notes")
"""Keys that name a run and change nothing in it."""

NOT_COMPARED = (*OF_ONE_DIRECTORY, *LABELS)
"""Keys that may differ between two runs of the same config."""

NOT_SHOWN = (*NOT_COMPARED, "imports")
"""Keys that say nothing about how a run differs from others."""

# --- which value of a metric is better ------------------------------------------------------------

Rule = Literal["greater", "less"]

# Parts of the names that are common among metrics, and those of our own classification metrics.
GREATER_KEYS = (
    "acc", "top", "AR@", "auc", "precision", "mAP", "mDice", "mIoU", "mAcc", "aAcc", "recall", "f1",
    "specificity",
)  # fmt: skip
LESS_KEYS = ("loss", "error", "perplexity", "mse", "mae", "mape")
_USUAL = ("accuracy", "precision", "recall", "f1", "auc", "specificity", "top1", "top5", *LESS_KEYS)


def rule_of(
    name: str,
    greater_keys: Sequence[str] = GREATER_KEYS,
    less_keys: Sequence[str] = LESS_KEYS,
) -> Rule | None:
    """Infer the rule as `infer_rule` does, but check the end of a name before its other parts.

    ``top5_error`` contains ``top``, of which more is better, but is an error.

    >>> rule_of("val/top5_error"), rule_of("val/top5"), rule_of("val/zebra")
    ('less', 'greater', None)
    """
    plain = name.split("/")[-1].lower()
    is_listed = plain in [key.lower() for key in greater_keys]
    if not is_listed and plain.endswith(tuple(key.lower() for key in less_keys)):
        return "less"
    return infer_rule(name, greater_keys, less_keys)


def infer_rule(
    name: str,
    greater_keys: Sequence[str] = GREATER_KEYS,
    less_keys: Sequence[str] = LESS_KEYS,
) -> Rule | None:
    """Infer the rule from a metric's name or return None if no key matches.

    A key that equals the name comes before one that is part of it, and greater before less.

    >>> infer_rule("val/accuracy"), infer_rule("val/loss"), infer_rule("val/zebra")
    ('greater', 'less', None)
    """
    plain = name.split("/")[-1].lower()
    greater = [key.lower() for key in greater_keys]
    less = [key.lower() for key in less_keys]
    if plain in greater:
        return "greater"
    if plain in less:
        return "less"
    if any(key in plain for key in greater):
        return "greater"
    return "less" if any(key in plain for key in less) else None


def nearest_metric(name: str) -> str:
    """Return a sentence that suggests a usual name for a misspelled one, or an empty text.

    >>> nearest_metric("val/acuracy"), nearest_metric("val/zebra")
    (" Did you mean 'val/accuracy'?", '')
    """
    path, sign, last = name.rpartition("/")
    close = get_close_matches(last.lower(), _USUAL, n=1, cutoff=0.75)
    return f" Did you mean '{path}{sign}{close[0]}'?" if close else ""


def is_better(new: float, old: float | None, rule: Rule) -> bool:
    """Return whether a value beats the best so far; a tie keeps the older, NaN never wins.

    >>> (
    ...     is_better(0.5, None, "less"),
    ...     is_better(0.5, 0.5, "less"),
    ...     is_better(float("nan"), None, "less"),
    ... )
    (True, False, False)
    """
    if new != new:  # NaN. It must not become the first best either: nothing would ever beat it.
        return False
    return old is None or (new > old if rule == "greater" else new < old)


def best_of(name: str, values: Iterable[float]) -> tuple[int, float] | None:
    """Return the place of the best value of a metric, and the value; None if that is not known.

    >>> best_of("val/loss", [0.5, 0.25, float("nan"), 0.25]), best_of("val/zebra", [1.0])
    ((1, 0.25), None)
    """
    rule = rule_of(name)
    finite = [(place, value) for place, value in enumerate(values) if isfinite(value)]
    if rule is None or not finite:
        return None
    return (min if rule == "less" else max)(finite, key=itemgetter(1))


def hash_of(config: Mapping[str, object]) -> str:
    """Return the SHA-256 of a config, without what only one directory has."""
    kept = {name: value for name, value in config.items() if name not in OF_ONE_DIRECTORY}
    return sha256(to_json(kept).encode()).hexdigest()
