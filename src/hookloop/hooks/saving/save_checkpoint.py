"""`SaveCheckpoint`: decide when to save, what to keep and which checkpoint is best."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from hookloop.checkpoint.choose import BestCheckpoint, best_in
from hookloop.checkpoint.saving.request import Save
from hookloop.checkpoint.saving.retention import Keep, without_surplus
from hookloop.checkpoint.saving.writer import MAX_WAIT
from hookloop.checkpoint.state.shape import Each, Named, check_state, is_number, is_text
from hookloop.checkpoint.store.storage import is_url, open_storage
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError
from hookloop.every import COUNTED, Every
from hookloop.metrics.results import without_phase
from hookloop.metrics.scores import BestScores
from hookloop.runs.checkpoint_names import ITER, best_name, checkpoint_name
from hookloop.runs.policy import GREATER_KEYS, LESS_KEYS, Rule, is_better

if TYPE_CHECKING:
    from hookloop.checkpoint.store.index import Saved
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")

PARTS = {"optimizer": "optimizers", "schedule": "schedules"}


class SaveCheckpoint(Hook):
    """Request checkpoints at an interval, at the end and of the best model, and delete old ones.

    Files are named after what was completed: ``epoch_5.pth``, ``iter_500.pth``; the best one
    ``best_accuracy_epoch_5.pth``. The order is save, validate, promote: the best checkpoint is the
    file just written, under a second name, so a failed validation loses nothing.

    Args:
        every: Interval in epochs, iterations, samples, tokens or time; None for no interval.
        begin: The first epoch or iteration to save; the interval counts from there. With an
            interval in samples or tokens, how many must be done before the first save.
        keep: How many of the newest to keep; None for all.
        keep_every: In addition, keep those of every n-th epoch or iteration forever.
        last: Whether to save at the end of the training, unless the last iteration is already
            saved.
        on_signal: Whether to save when a signal ends the training, even without ``last``.
        on_exception: Whether to write ``exception_iter_<n>.pth`` when the run fails.
        best: A metric, several metrics, or ``"auto"`` for the first metric of the validation that
            is not a loss and whose name shows whether more or less is better, or else the loss.
        rule: Whether ``"greater"`` or ``"less"`` is better: one rule, or one per metric; by default
            inferred from the names.
        keep_best: How many of the best to keep for each metric of ``best``; None for all.
        greater_keys: Parts of metric names for which more is better.
        less_keys: Parts of metric names for which less is better.
        directory: Where to save, if not in the run directory: a path, or a URL for fsspec. The
            files go to a directory there that is named after the run, so that runs do not mix.
        template: File name with ``{}`` for the number, instead of the usual name.
        leave_out: What not to save: ``"optimizer"``, ``"schedule"``.
        load_best: Whether to put the best weights back into the model when the training has ended;
            the last checkpoint and all other files stay as they are.
        max_wait: How many seconds to wait for a save in progress when the next one is due, and for
            the last one when the training ends; each 10 MB adds one second. After that the run
            continues without waiting, and reports the store in ``outcome.problem``.

    Example:
        >>> hook = SaveCheckpoint(every="500 iters", keep=2, best="val/accuracy")
        >>> str(hook.every), hook.reads
        ('500 iters', ('val/accuracy',))
    """

    priority = Priority.VERY_LOW  # After hooks that compute metrics: one of them may be `best`.
    draws_random_numbers = False

    def __init__(  # noqa: PLR0913 - the documented options of a checkpoint
        self,
        every: Every | int | str | None = "1 epoch",
        *,
        begin: int = 0,
        keep: int | None = 2,
        keep_every: int | None = None,
        last: bool = True,
        on_signal: bool = True,
        on_exception: bool = False,
        best: str | Sequence[str] | None = None,
        rule: Rule | Sequence[Rule] | None = None,
        keep_best: int | None = 1,
        greater_keys: Sequence[str] = GREATER_KEYS,
        less_keys: Sequence[str] = LESS_KEYS,
        directory: str | Path | None = None,
        template: str | None = None,
        leave_out: Sequence[Literal["optimizer", "schedule"]] = (),
        load_best: bool = False,
        max_wait: float = MAX_WAIT,
    ) -> None:
        self.interval = Every.parse(every) if every is not None else None
        self.begin = begin
        self.keep = keep
        self.keep_every = keep_every
        self.last = last
        self.on_signal = on_signal
        self.saves_exceptions = on_exception
        self.directory = str(directory) if directory is not None else None
        self.template = template
        self.leave_out = tuple(PARTS.get(part, part) for part in leave_out)
        self.max_wait = max_wait
        self.keep_best = keep_best
        self._best = BestScores(best, rule, greater_keys, less_keys, keep_best)
        self.reads = self._best.reads
        self.load_best = load_best
        self._best_saved: list[Saved] = []
        self._by_epoch = self.interval is None or self.interval.unit == "epochs"
        self._saved_at = -1
        self._is_training = False
        self._check()
        self._by_time = self.interval is not None and self.interval.unit == "seconds"
        self._by_count = self.interval is not None and self.interval.unit in COUNTED
        # The plan then calls after_train_iter only when it is due. It cannot count from `begin`,
        # so such an interval is counted here, in every iteration.
        is_planned = self._by_time or self._by_count or not (self._by_epoch or begin)
        self.every = self.interval if is_planned else None

    def _check(self) -> None:
        for name, value, least in (
            ("keep", self.keep, 1),
            ("keep_every", self.keep_every, 1),
            ("keep_best", self.keep_best, 1),
            ("begin", self.begin, 0),
            ("max_wait", self.max_wait, 0),
        ):
            if value is not None and value < least:
                raise HookError(f"SaveCheckpoint: {name} must be at least {least}, not {value}.")
        if self.template is not None and ("{}" not in self.template or "/" in self.template):
            raise HookError(
                f"SaveCheckpoint: template '{self.template}' must be a file name with {{}} for the "
                "number, for example 'model_{}.pth'."
            )
        if self.keep_best != 1 and not self._best.watches:
            raise HookError("SaveCheckpoint: keep_best needs best=, the metric that decides.")
        if self.load_best and not self._best.watches:
            raise HookError("SaveCheckpoint: load_best=True needs best=, the metric that decides.")
        for part in self.leave_out:
            if part not in PARTS.values():
                raise HookError(
                    f"SaveCheckpoint: leave_out takes optimizer and schedule, not {part}."
                )

    def state_dict(self) -> dict[str, object]:
        state: dict[str, object] = {
            "saved_at": self._saved_at,
            "best": self._best.scores,
            "auto": self._best.metrics,
        }
        return state if self.keep_best == 1 else {**state, "kept": self._best.kept}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        check_state(
            state,
            {
                "saved_at": is_number,
                "best": Named(is_number),
                "kept?": Named(Each(is_number)),
                "auto": Each(is_text),
            },
        )
        self._saved_at = cast("int", state["saved_at"])
        best = cast("Mapping[str, float]", state["best"])
        several = cast("Mapping[str, list[float]]", state.get("kept", {}))
        self._best.kept = {name: several.get(name, [one]) for name, one in best.items()}
        self._best.metrics = list(cast("list[str]", state["auto"]))

    def describe(self, run: Run) -> Mapping[str, object]:
        saved = {"last_save": f"iteration {self._saved_at}"} if self._saved_at >= 0 else {}
        return {**saved, **{f"best {name}": one for name, one in self._best.scores.items()}}

    def stores(self, run_dir: Path) -> Sequence[str]:
        return () if self.directory is None else (_store(self.directory, run_dir),)

    def before_train(self, run: Run) -> None:
        self._is_training = True
        # Rejects a location that nothing can open, now and not at the first save.
        storage = open_storage(self._location(run) or run.dir)
        if self.directory is not None and run.world.is_main:
            storage.clean()  # Of drafts that a killed run left; the run directory is clean already.
        data = run.train_data
        if data is not None and data.inexact is not None:
            _log.warning(
                "A resume in the middle of %s may not be exact: %s.", data.name, data.inexact
            )

    def after_train_iter(self, run: Run) -> None:
        done = run.progress.iter
        if self.interval is not None and self._by_count:
            done = self.interval.done(run.progress)
        if not self._by_epoch and self._is_due(done):
            self._request(run, regular=True)

    def after_train_epoch(self, run: Run) -> None:
        if self.interval is not None and self._by_epoch and self._is_due(run.progress.epoch):
            self._request(run, regular=True)

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        # A validation without training has nothing to save.
        if self._is_training and self._best.watches:
            for metric, values in self._improved(run, metrics):
                self._request_best(run, metric, values)

    def after_train(self, run: Run) -> None:
        wanted = self.last or (self.on_signal and run.is_interrupted)
        # An interval in time is due on the first rank, so it alone knows when it has saved.
        knows = run.world.is_main or not self._by_time
        if wanted and knows and self._saved_at != run.progress.iter:
            self._request(run)

    def on_exception(self, run: Run, error: BaseException) -> None:
        if self.saves_exceptions and self._is_training and isinstance(error, Exception):
            name = checkpoint_name("exception_iter", run.progress.iter)
            run.save(
                Save(
                    name,
                    self._location(run),
                    kind="exception",
                    owner=self.name,
                    max_wait=self.max_wait,
                ),
                everywhere=True,  # Of the rank that failed: nobody can be asked any more.
            )

    def after_save_checkpoint(self, run: Run, saved: Saved) -> None:
        for metric in best_in([saved], self.name):
            keep = Keep(f"{self.name}/{metric}", "best", self.keep_best)
            others = [one for one in self._best_saved if one.name != saved.name]
            self._best_saved = without_surplus([*others, saved], keep)

    def after_run(self, run: Run) -> None:
        self._is_training = False

    @property
    def best_metrics(self) -> list[str]:
        """The metrics whose best checkpoint is kept, without their phase."""
        return list(self._best.metrics)

    @property
    def best_rules(self) -> dict[str, Rule]:
        """The metrics whose best checkpoint is kept, and whether more or less of each is better."""
        return {f"val/{name}": rule for name, rule in self._best.rules.items()}

    def best_checkpoints(self, run: Run) -> list[BestCheckpoint]:
        """List the best checkpoints of each metric, the best first, as far as there are any."""
        found = best_in(self._best_saved, self.name)
        place = self._location(run) or str(run.dir)
        # Those of earlier processes are in the index. A remote store is not asked: the end of a
        # run would wait for its answer.
        if self._best.watches and not is_url(place) and Path(place).is_dir():
            found |= best_in(CheckpointStore(place).index.entries.values(), self.name)
        listed = [BestCheckpoint.of(m, one) for m in self._best.metrics for one in found.get(m, [])]
        # Where an earlier process has saved a better one in a remote store, none is the best.
        unlisted = {
            f"val/{metric}"
            for metric, best in self._best.scores.items()
            if metric in found
            and is_better(
                best, found[metric][0].metrics.get(f"val/{metric}"), self._best.rules[metric]
            )
        }
        return [one for one in listed if one.metric not in unlisted]

    def _improved(
        self, run: Run, metrics: Mapping[str, float]
    ) -> list[tuple[str, dict[str, float]]]:
        """Return each metric that is among its best, with all metrics.

        The first rank decides: it alone knows of a best that could not be written, and of metrics
        that its hooks put.
        """
        found: list[tuple[str, dict[str, float]]] = []
        if run.world.is_main:
            # Files are named after the metric alone, and so are the scores in a checkpoint.
            values = without_phase(metrics, "val")
            found = [(name, values) for name in self._best.update(values, run.val_data)]
        return run._internals.ranks.share(found)

    def _is_due(self, count: int) -> bool:
        if count < max(1, self.begin) or self.interval is None:
            return False
        if self.every is not None:  # The plan calls only when the interval has passed.
            return True
        return (count - self.begin) % int(self.interval.count) == 0

    def _counts_epochs(self, run: Run) -> bool:
        """Return whether a checkpoint made now is named after an epoch."""
        # Inside an epoch, where a signal or a validation can ask for one, it cannot be.
        return self._by_epoch and run.progress.stage != "inside"

    def _number(self, run: Run) -> int:
        return run.progress.epoch if self._counts_epochs(run) else run.progress.iter

    def _name(self, run: Run, number: int | str | None = None) -> str:
        number = self._number(run) if number is None else number
        if self.template is not None:
            return self.template.replace("{}", str(number))
        return checkpoint_name("epoch" if self._counts_epochs(run) else "iter", number)

    def _location(self, run: Run) -> str | None:
        return _store(self.directory, run.dir) if self.directory else None

    def _request(self, run: Run, *, regular: bool = False) -> None:
        self._saved_at = run.progress.iter
        every = self.keep_every
        run.save(
            Save(
                # On many ranks a clock's request is obeyed at the next sync point of the ranks.
                self._name(run, ITER if self._by_time and not run.world.is_alone else None),
                self._location(run),
                kind="periodic",
                owner=self.name,
                keep=self.keep,
                forever=regular and every is not None and self._number(run) % every == 0,
                leave_out=self.leave_out,
                max_wait=self.max_wait,
            ),
            everywhere=not self._by_time,
        )

    def _request_best(self, run: Run, metric: str, metrics: Mapping[str, float]) -> None:
        """Request that the file of this iteration is kept as the best; if needed, write it."""
        run.save(
            Save(
                best_name(metric, self._name(run)),
                self._location(run),
                kind="best",
                owner=f"{self.name}/{metric}",
                keep=self.keep_best,
                rule=None if self.keep_best == 1 else self._best.rules[metric],
                leave_out=self.leave_out,
                of=self._name(run) if self._saved_at == run.progress.iter else None,
                metrics={f"val/{name}": value for name, value in metrics.items()},
                max_wait=self.max_wait,
                # If the save fails, the score must not stay the best without a file.
                on_lost=partial(self._best.revert, metric, metrics[metric]),
            ),
            everywhere=True,
        )


def _store(directory: str, run_dir: Path) -> str:
    return f"{directory.rstrip('/')}/{run_dir.name}"
