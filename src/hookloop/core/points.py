"""The table of mount points: the one place that defines where hooks act.

The loop, as the table lays it out::

    before_run
      after_load_checkpoint
      before_train
        before_epoch
          before_train_epoch
            before_train_iter
              before_forward  after_forward  after_loss  after_backward     per microbatch
              before_update  after_update
            after_train_iter
          after_train_epoch
          before_val  before_val_epoch
            before_val_iter  before_forward  after_forward  after_loss  after_val_iter
          after_val_epoch  after_val
        after_epoch
        after_epoch_profile
      after_train
    after_run

A point's name stands here once, once as a method of `Hook`, and once where it is fired.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hookloop import peers
from hookloop.errors import HookError
from hookloop.peers import suggestion

Clock = Literal["iters", "epochs"]

_NAME = re.compile(r"(before|after|on)_[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Point:
    """A named place in the run where hooks act.

    Args:
        name: ``before_...``, ``after_...`` or ``on_...``.
        doc: When it is fired, in one line.
        args: Names of what its calls receive besides the run.
        clock: Which counter moves between two firings, if one does; a schedule in that unit
            can limit a hook here.
        ahead: Whether the point is fired before that counter moves.
        within: Whether it lies within the update, which a loop of the user's own makes itself.

    >>> Point("after_generate", "when samples were drawn", args=("samples",)).signature
    'after_generate(run, samples)'
    """

    name: str
    doc: str = ""
    args: tuple[str, ...] = ()
    clock: Clock | None = None
    ahead: bool = False
    within: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise HookError(
                f"'{self.name}' cannot be a mount point: its name must be lower case and begin "
                "with before_, after_ or on_."
            )

    @property
    def is_busy(self) -> bool:
        """Whether it may be fired in every iteration, so that each microsecond counts."""
        return self.within or self.name.endswith("_iter") or self not in POINTS

    @property
    def signature(self) -> str:
        """How a hook defines it."""
        return f"{self.name}({', '.join(('run', *self.args))})"


POINTS: tuple[Point, ...] = (
    Point("before_run", "first of all, in every call of train, validate and test"),
    Point(
        "after_load_checkpoint",
        "a checkpoint was read and is about to be restored; its entries may be changed",
        args=("checkpoint",),
    ),
    Point("before_train", "everything is restored, training is about to begin"),
    Point("before_epoch", "an epoch begins", clock="epochs", ahead=True),
    Point("before_train_epoch", "a pass over the training data begins", clock="epochs", ahead=True),
    Point("before_train_iter", "the batch is there, nothing is done", clock="iters", ahead=True),
    Point("before_forward", "run.batch may be replaced; in every phase", within=True),
    Point("after_forward", "run.output is there and may be replaced; in every phase", within=True),
    Point("after_loss", "run.loss is there and may be replaced; in every phase", within=True),
    Point("after_backward", "the gradients of a microbatch were added", within=True),
    Point(
        "before_update",
        "gradients are complete and unscaled",
        clock="iters",
        ahead=True,
        within=True,
    ),
    Point("after_update", "the optimizer has stepped", clock="iters", ahead=True, within=True),
    Point("after_train_iter", "the iteration is done and counted", clock="iters"),
    Point("after_train_epoch", "the training pass is done and counted", clock="epochs"),
    Point("before_val", "a validation begins"),
    Point("before_val_epoch", "the model is in evaluation mode, the first stream is next"),
    Point("before_val_iter", "a validation batch is there"),
    Point("after_val_iter", "a validation batch is done"),
    Point("after_val_epoch", "all streams are done, the metrics are known", args=("metrics",)),
    Point("after_val", "the validation is over"),
    Point("after_epoch", "training and the validation that belongs to it are done", clock="epochs"),
    Point("after_epoch_profile", "after every hook's after_epoch", clock="epochs"),
    Point("after_train", "training ended by itself or was asked to stop"),
    Point("before_test", "a test begins"),
    Point("before_test_epoch", "the model is in evaluation mode, the first stream is next"),
    Point("before_test_iter", "a test batch is there"),
    Point("after_test_iter", "a test batch is done"),
    Point("after_test_epoch", "all streams are done, the metrics are known", args=("metrics",)),
    Point("after_test", "the test is over"),
    Point(
        "before_save_checkpoint",
        "a checkpoint is gathered and about to be written; entries may be added",
        args=("checkpoint",),
    ),
    Point("after_save_checkpoint", "a checkpoint is written", args=("saved",)),
    Point("on_stop", "the loop obeys a request to stop", args=("reason",)),
    Point("on_exception", "an exception leaves the loop", args=("error",)),
    Point("after_run", "last of all, also after a failure; run.outcome tells"),
)


class PointTable(dict[str, Point]):
    """The points of one run: the engine's and those that the project declared."""

    def __init__(self, own: Iterable[Point | str] = ()) -> None:
        super().__init__({point.name: point for point in POINTS})
        for declared in own:
            point = Point(declared) if isinstance(declared, str) else declared
            if point.name in self:
                raise HookError(f"The mount point '{point.name}' is declared twice.")
            self[point.name] = point

    def __missing__(self, name: str) -> Point:
        if not isinstance(name, str):  # `@trainer.on` without the point.
            raise HookError(f"{name!r} is not the name of a mount point, such as 'after_epoch'.")
        hint = suggestion(name, peers.POINTS, self)
        raise HookError(
            f"'{name}' is no mount point.{hint} 'hookloop points' lists all {len(POINTS)}; "
            f"one of your own is declared with Trainer(points=['{name}'])."
        )
