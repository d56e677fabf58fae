"""Whether a metric is better when it is greater or when it is less, told from its name."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Literal

Rule = Literal["greater", "less"]

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
    """Infer the rule as `infer_rule` does, but let the end of a name decide before its parts.

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
    """Infer the rule from a metric's name, or return None when the name tells nothing.

    A key that equals the name decides before one that is part of it, and greater before less.

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
    """Return a sentence that suggests a usual name for a misspelt one, or nothing.

    >>> nearest_metric("val/acuracy"), nearest_metric("val/zebra")
    (" Did you mean 'val/accuracy'?", '')
    """
    path, sign, last = name.rpartition("/")
    close = get_close_matches(last.lower(), _USUAL, n=1, cutoff=0.75)
    return f" Did you mean '{path}{sign}{close[0]}'?" if close else ""


def is_better(new: float, old: float | None, rule: Rule) -> bool:
    """Tell whether a value beats the best so far; ties keep the older, NaN never wins.

    >>> (
    ...     is_better(0.5, None, "less"),
    ...     is_better(0.5, 0.5, "less"),
    ...     is_better(float("nan"), None, "less"),
    ... )
    (True, False, False)
    """
    if new != new:
        return False
    return old is None or (new > old if rule == "greater" else new < old)
