"""``mmengine.hooks.CheckpointHook``: save and keep the checkpoints that MMEngine would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.dialects import Catalogued
from hookloop.errors import nearest
from hookloop.runs import Rule, infer_rule
from hookloop_mmengine.hooks.early_stopping_hook import GREATER, LESS
from hookloop_mmengine.hooks.hook import Hook
from hookloop_mmengine.hooks.keep_checkpoints import KeepCheckpoints
from hookloop_mmengine.hooks.publish_checkpoints import PublishCheckpoints

if TYPE_CHECKING:
    from hookloop import Hook as NativeHook


class CheckpointHook(Hook, Catalogued):
    """Save checkpoints at an interval, at the end, and of the best metrics.

    Args:
        interval: Epochs or iterations between two checkpoints; 0 or less for none.
        by_epoch: Whether epochs are counted.
        save_optimizer: Whether the optimizers' state is saved.
        save_param_scheduler: Whether the schedulers' state is saved.
        out_dir: Another directory; files go to its subdirectory with the name of the run's.
        max_keep_ckpts: How many of the newest to keep; 0 or less for all.
        save_last: Whether to save at the end.
        save_best: A metric, several metrics, or ``auto`` for the first one of the first validation.
        rule: ``greater`` or ``less``, for all metrics or one per metric; inferred by default.
        greater_keys: Names of metrics for which more is better.
        less_keys: Names of metrics for which less is better.
        file_client_args: Not offered; ``out_dir`` takes URLs.
        filename_tmpl: The name of the files, with ``{}`` for the number.
        backend_args: Not offered.
        published_keys: The keys of the published files, which are written at the end.
        save_begin: The first epoch or iteration to save; the interval counts from there.
    """

    priority = "VERY_LOW"

    def __init__(  # noqa: PLR0913, PLR0917 - MMEngine's signature
        self,
        interval: int = -1,
        by_epoch: bool = True,
        save_optimizer: bool = True,
        save_param_scheduler: bool = True,
        out_dir: str | Path | None = None,
        max_keep_ckpts: int = -1,
        save_last: bool = True,
        save_best: str | Sequence[str] | None = None,
        rule: str | Sequence[str] | None = None,
        greater_keys: Sequence[str] | None = None,
        less_keys: Sequence[str] | None = None,
        file_client_args: object = None,
        filename_tmpl: str | None = None,
        backend_args: object = None,
        published_keys: str | Sequence[str] | None = None,
        save_begin: int = 0,
        **kwargs: object,
    ) -> None:
        # Unknown arguments would only fail at the first save, after hours of training.
        _check(save_begin, kwargs, file_client_args, backend_args, published_keys)
        self.interval = interval
        self.by_epoch = by_epoch
        self.save_optimizer = save_optimizer
        self.save_param_scheduler = save_param_scheduler
        self.out_dir = out_dir
        self.max_keep_ckpts = max_keep_ckpts
        self.save_last = save_last
        self.save_begin = save_begin
        self.filename_tmpl = filename_tmpl or ("epoch_{}.pth" if by_epoch else "iter_{}.pth")
        self.save_best = [save_best] if isinstance(save_best, str) else list(save_best or ())
        self._rules = [rule] if isinstance(rule, str) else list(rule or ())
        self._keys = (tuple(greater_keys or GREATER), tuple(less_keys or LESS))
        keys = [published_keys] if isinstance(published_keys, str) else published_keys
        self.published_keys = list(keys or ())
        # A metric whose rule cannot be inferred is an error now, and not at the first validation.
        self._check_best()

    def rule_of(self, metric: str) -> Rule:
        """Return whether a ``greater`` or ``less`` value of a metric is better."""
        found: str | None
        if self._rules:
            # With `auto` the metric has a name that save_best does not list.
            index = self.save_best.index(metric) if metric in self.save_best else 0
            found = self._rules[index] if len(self._rules) > 1 else self._rules[0]
        else:
            found = infer_rule(metric, *self._keys)
        if found == "greater":
            return "greater"
        if found == "less":
            return "less"
        raise ValueError(
            f"Cannot infer the rule for {metric}, thus a specific rule must be specified: "
            "rule='greater' or rule='less'."
        )

    def native_hooks(self) -> list[NativeHook]:
        keep = KeepCheckpoints(self)
        return [keep, PublishCheckpoints(self, keep)] if self.published_keys else [keep]

    def _check_best(self) -> None:
        names = self.save_best
        if "auto" in names and len(names) > 1:
            raise AssertionError('Only support one "auto" in "save_best" list')
        if len(set(names)) != len(names):
            raise AssertionError(f'Find duplicate element in "save_best": {names}.')
        for rule in self._rules:
            if rule not in ("greater", "less"):
                raise KeyError(f"rule must be greater, less or None, but got {rule}.")
        if len(self._rules) > 1 and len(self._rules) != len(names):
            raise AssertionError(
                f"rule has {len(self._rules)} entries for {len(names)} metrics of save_best."
            )
        for name in names:
            # The name behind `auto` is known after the first validation only.
            if name != "auto":
                self.rule_of(name)


def _check(
    save_begin: int, unknown: dict[str, object], client: object, backend: object, keys: object
) -> None:
    """Reject arguments with which MMEngine would fail, some of them only at the first save."""
    if save_begin < 0:
        raise ValueError(f"save_begin should not be less than 0, but got {save_begin}")
    if client is not None or backend is not None:
        raise ValueError("file_client_args and backend_args are not offered: out_dir takes URLs.")
    if not isinstance(keys, str | list | tuple | None):
        raise TypeError(f"published_keys should be str or a sequence of str, but got {type(keys)}")
    # From the signature itself, so that the suggestion cannot name an argument that is gone.
    names = [name for name in CheckpointHook.__init__.__annotations__ if name != "return"]
    for name in unknown:
        raise TypeError(f"CheckpointHook takes no '{name}'.{nearest(name, names)}")
