"""``mmengine.hooks.LoggerHook``: log lines, and numbers for the visualizer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.dialects import length_of, plain, write_text
from hookloop_mmengine.dist import is_main_process
from hookloop_mmengine.hooks.hook import DATA_BATCH, Hook

if TYPE_CHECKING:
    from hookloop_mmengine.facade import RunnerFacade


SUFFIX_TYPE = Sequence[str] | str  # Hooks of projects import it.


class LoggerHook(Hook):
    """Log the progress of the training at an interval and after each evaluation.

    Args:
        interval: Iterations of an epoch between two lines.
        ignore_last: Whether the last iterations of an epoch, fewer than the interval, get no line.
        interval_exp_name: Iterations between two lines with the name of the experiment.
        out_dir: The directory that log files are copied to at the end.
        out_suffix: The endings of the files that are copied.
        keep_local: Whether the original files are kept.
        file_client_args: Not offered.
        log_metric_by_epoch: Whether the step of validation metrics is the epoch.
        backend_args: Not offered.
    """

    priority = "BELOW_NORMAL"

    def __init__(  # noqa: PLR0913, PLR0917 - MMEngine's signature
        self,
        interval: int = 10,
        ignore_last: bool = True,
        interval_exp_name: int = 1000,
        out_dir: str | Path | None = None,
        out_suffix: Sequence[str] | str = (".json", ".log", ".py", "yaml"),
        keep_local: bool = True,
        file_client_args: object = None,
        log_metric_by_epoch: bool = True,
        backend_args: object = None,
    ) -> None:
        for name, number in (("interval", interval), ("interval_exp_name", interval_exp_name)):
            if not isinstance(number, int):
                raise TypeError(f"{name} must be an integer, not {number!r}")
            if number <= 0:
                raise ValueError(f"{name} must be greater than 0, not {number}")
        for name, flag in (("ignore_last", ignore_last), ("keep_local", keep_local)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} must be a boolean, not {flag!r}")
        if not isinstance(out_dir, str | Path | None):
            raise TypeError(f"out_dir must be a str or Path object, not {out_dir!r}")
        # Both describe where out_dir is, so alone they have no effect.
        if out_dir is None and (file_client_args or backend_args):
            raise ValueError("out_dir should be given when backend_args is.")
        self.interval = interval
        self.ignore_last = ignore_last
        self.interval_exp_name = interval_exp_name
        self.out_dir = Path(out_dir) if out_dir is not None else None
        self.out_suffix = (out_suffix,) if isinstance(out_suffix, str) else tuple(out_suffix)
        self.keep_local = keep_local
        self.log_metric_by_epoch = log_metric_by_epoch

    def before_run(self, runner: RunnerFacade) -> None:
        self.json_log_path = f"{runner.timestamp}.json"

    def after_train_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: dict[str, object] | None = None,
    ) -> None:
        loader: Sequence[object] = runner.train_dataloader  # type: ignore[assignment]
        # Of a stream the end is not known beforehand.
        is_end = self.end_of_epoch(loader, batch_idx)
        if is_end or self.every_n_train_iters(runner, self.interval_exp_name):
            runner.logger.info("Exp name: %s", runner.experiment_name)
        # An epoch no longer than the interval would otherwise never get a line.
        logs_end = is_end and (not self.ignore_last or len(loader) <= self.interval)
        if not (logs_end or self.every_n_inner_iters(batch_idx, self.interval)):
            return
        tag, text = runner.log_processor.get_log_after_iter(runner, batch_idx, "train")  # type: ignore[attr-defined]
        runner.logger.info(text)
        runner.visualizer.add_scalars(tag, runner.iter + 1, self.json_log_path)  # type: ignore[attr-defined]

    def after_val_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: Sequence[object] | None = None,
    ) -> None:
        self._log_progress(runner, batch_idx, "val")

    def after_test_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: Sequence[object] | None = None,
    ) -> None:
        self._log_progress(runner, batch_idx, "test")

    def after_val_epoch(
        self, runner: RunnerFacade, metrics: Mapping[str, object] | None = None
    ) -> None:
        count = _length(runner.val_dataloader)
        tag, text = runner.log_processor.get_log_after_epoch(runner, count, "val")  # type: ignore[attr-defined]
        runner.logger.info(text)
        step = runner.epoch if self.log_metric_by_epoch else runner.iter
        runner.visualizer.add_scalars(tag, step, self.json_log_path)  # type: ignore[attr-defined]

    def after_test_epoch(
        self, runner: RunnerFacade, metrics: Mapping[str, object] | None = None
    ) -> None:
        count = _length(runner.test_dataloader)
        tag, text = runner.log_processor.get_log_after_epoch(  # type: ignore[attr-defined]
            runner, count, "test", with_non_scalar=True
        )
        runner.logger.info(text)
        if not is_main_process():
            return
        directory = Path(runner.log_dir)
        directory.mkdir(parents=True, exist_ok=True)
        write_text(directory / self.json_log_path, json.dumps(plain(tag)))

    def after_run(self, runner: RunnerFacade) -> None:
        # Before the copy, so that the files are complete.
        close = getattr(runner.visualizer, "close", None)
        if callable(close):
            close()
        if self.out_dir is not None and is_main_process():
            self._copy(Path(runner.log_dir), self.out_dir / Path(runner.work_dir).name)

    def _log_progress(self, runner: RunnerFacade, batch_idx: int, mode: str) -> None:
        if self.every_n_inner_iters(batch_idx, self.interval):
            _, text = runner.log_processor.get_log_after_iter(runner, batch_idx, mode)  # type: ignore[attr-defined]
            runner.logger.info(text)

    def _copy(self, source: Path, destination: Path) -> None:
        for path in sorted(source.rglob("*")):
            if path.is_file() and path.name.endswith(self.out_suffix):
                target = destination / path.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)
                if not self.keep_local:
                    path.unlink()


def _length(data: object) -> int:
    return length_of(data) or 0
