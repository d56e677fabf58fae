"""``mmengine.runner.LogProcessor``: log lines from the values of the message hub."""

from __future__ import annotations

import datetime
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import torch

from hookloop.dialects import length_of

if TYPE_CHECKING:
    from hookloop_mmengine.facade import RunnerFacade

MEAN = r".*(loss|time|data_time|grad_norm).*"


class LogProcessor:
    """Average the values of the message hub and format them as a line.

    Args:
        window_size: How many values losses and times are averaged over; it spans epochs.
        by_epoch: Whether lines begin with ``Epoch(train) [1][3/10]``, else ``Iter(train) [3/10]``.
        custom_cfg: Further statistics: ``data_src``, ``method_name``, ``window_size`` (a number,
            ``epoch`` or ``global``) and ``log_name``.
        num_digits: The number of digits after the point.
        log_with_hierarchy: Whether names keep their mode, as in ``train/loss``.
        mean_pattern: The pattern of the names that are averaged.
    """

    def __init__(
        self,
        window_size: int = 10,
        by_epoch: bool = True,
        custom_cfg: Sequence[Mapping[str, object]] | None = None,
        num_digits: int = 4,
        log_with_hierarchy: bool = False,
        mean_pattern: str = MEAN,
    ) -> None:
        self.window_size = window_size
        self.by_epoch = by_epoch
        self.custom_cfg = list(custom_cfg or ())
        self.num_digits = num_digits
        self.log_with_hierarchy = log_with_hierarchy
        self.mean_pattern = re.compile(mean_pattern)

    def get_log_after_iter(
        self, runner: RunnerFacade, batch_idx: int, mode: str
    ) -> tuple[dict[str, object], str]:
        """Return the numbers of an iteration and the line that shows them."""
        tag = self._collect(runner, batch_idx, mode)
        words = [self._progress(runner, batch_idx, mode)]
        # By the end of the name: with several groups or optimizers, their names are in front of it.
        rates = {key: value for key, value in tag.items() if key.split("/")[-1].endswith("lr")}
        words += [
            f"{key}: {cast('float', value):.{self.num_digits}e}" for key, value in rates.items()
        ]
        prefix = f"{mode}/" if self.log_with_hierarchy else ""
        time_name, data_name = f"{prefix}time", f"{prefix}data_time"
        if time_name in tag:
            eta = cast("float", runner.message_hub.get_info("eta", 0))
            words.append(f"eta: {datetime.timedelta(seconds=int(eta))}")
            words.append(f"time: {tag[time_name]:.{self.num_digits}f}")
            words.append(f"data_time: {tag[data_name]:.{self.num_digits}f}")
        # MMEngine shows the peak memory on a GPU only.
        if torch.cuda.is_available():
            memory = int(torch.cuda.max_memory_allocated() / 2**20)
            words.append(f"memory: {memory}")
            tag["memory"] = memory
        if mode == "train":
            already = {*rates, time_name, data_name, "memory"}
            words += [self._format(key, value) for key, value in tag.items() if key not in already]
            # Indices become the numbers that users count.
            tag["epoch"] = runner.epoch + 1
            tag["iter"] = runner.iter + 1
            return tag, "  ".join(words)
        # In a test alone there is no training, and no count of its iterations.
        if mode == "val" and self.by_epoch:
            tag["epoch"] = runner.epoch
        tag["iter"] = runner.iter + 1 if runner._train_loop is not None else 0
        return tag, f"{words[0]}    {'  '.join(words[1:])}  "

    def get_log_after_epoch(
        self, runner: RunnerFacade, batch_idx: int, mode: str, with_non_scalar: bool = False
    ) -> tuple[dict[str, object], str]:
        """Return the numbers of an evaluation and the line that shows them."""
        tag = self._collect(runner, batch_idx, mode, whole=True)
        prefix = f"{mode}/" if self.log_with_hierarchy else ""
        times = {f"{prefix}data_time", f"{prefix}time"}
        others = {
            key.removeprefix(f"{mode}/"): value
            for key, value in runner.message_hub.runtime_info.items()
            if key.startswith(f"{mode}/")
        }
        named = [item for item in tag.items() if item[0] not in times]
        words = [self._format(key, value) for key, value in named]
        words += [f"{key}: \n{value}\n" for key, value in others.items()]
        # Sorted, because a set has no fixed order.
        words += [self._format(key, tag[key]) for key in sorted(times & tag.keys())]
        start = self._epoch_progress(runner, batch_idx, mode)
        if with_non_scalar:
            tag = {**others, **tag}
        return OrderedDict(tag), f"{start}    {'  '.join(words)}"

    def _collect(
        self, runner: RunnerFacade, batch_idx: int, mode: str, *, whole: bool = False
    ) -> dict[str, object]:
        """Return the numbers of a mode; those that match the pattern are averaged."""
        tag: dict[str, object] = {}
        for name, history in runner.message_hub.log_scalars.items():
            if not name.startswith(f"{mode}/"):
                continue
            key = name if self.log_with_hierarchy else name.removeprefix(f"{mode}/")
            # Never longer than the values that this run has seen.
            window = (
                batch_idx if whole else min(self.window_size, self._done(runner, batch_idx, mode))
            )
            averages = self.mean_pattern.search(name) and (whole or mode == "train")
            is_time = key.endswith("time")
            if mode == "train" or is_time:
                # At least 1: to a history, 0 means all of its values.
                tag[key] = history.mean(max(window, 1)) if averages else history.current()
            elif whole:
                tag[key] = history.current()
        # A copy of each entry, from which `_add_custom` removes what is not an argument.
        for entry in self.custom_cfg if mode == "train" else ():
            self._add_custom(runner, tag, dict(entry), batch_idx)
        return tag

    def _add_custom(
        self, runner: RunnerFacade, tag: dict[str, object], entry: dict[str, object], batch_idx: int
    ) -> None:
        source = str(entry.pop("data_src"))
        name = str(entry.pop("log_name", source))
        method = str(entry.pop("method_name"))
        window = entry.get("window_size")
        # The words depend on how far the run is, so they become numbers now.
        if window == "epoch":
            entry["window_size"] = batch_idx + 1
        elif window == "global":
            entry["window_size"] = runner.iter + 1
        history = runner.message_hub.get_scalar(f"train/{source}")
        tag[name] = history.statistics(method, **entry)

    def _done(self, runner: RunnerFacade, batch_idx: int, mode: str) -> int:
        return runner.iter + 1 if mode == "train" else batch_idx + 1

    def _progress(self, runner: RunnerFacade, batch_idx: int, mode: str) -> str:
        """Return the start of a line, for example ``Epoch(train) [1][ 3/10]``."""
        length = _length(getattr(runner, f"{mode}_dataloader"))
        if self.by_epoch or mode != "train":
            width = len(str(length))
            if mode in ("train", "val"):
                epoch = runner.epoch + (1 if mode == "train" else 0)
                digits = len(str(runner.max_epochs))
                head = f"[{epoch:>{digits}}]" if self.by_epoch else ""
            else:
                head = ""
            kind = "Epoch" if self.by_epoch else "Iter"
            return f"{kind}({mode}) {head}[{batch_idx + 1:>{width}}/{length}]"
        width = len(str(runner.max_iters))
        return f"Iter(train) [{runner.iter + 1:>{width}}/{runner.max_iters}]"

    def _epoch_progress(self, runner: RunnerFacade, count: int, mode: str) -> str:
        if self.by_epoch:
            head = f"[{runner.epoch}]" if mode == "val" else ""
            return f"Epoch({mode}) {head}[{count}/{count}]"
        return f"Iter({mode}) [{count}/{count}]"

    def _format(self, name: str, value: object) -> str:
        return (
            f"{name}: {value:.{self.num_digits}f}"
            if isinstance(value, float)
            else f"{name}: {value}"
        )


def _length(data: object) -> int:
    # A stream has no length.
    return length_of(data) or 0
