"""Whether more or less of a metric is better, inferred from its name."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Literal

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
