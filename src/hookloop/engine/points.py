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

A point's name occurs once here, once as a method of `Hook`, and once where it is fired.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

from hookloop import peers
from hookloop.errors import HookError
from hookloop.peers import suggestion

if TYPE_CHECKING:
    from hookloop.engine.plan import Calls

Clock = Literal["iters", "epochs"]

_NAME = re.compile(r"(before|after|on)_[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Point:
    """A named place in the run where hooks act.

    Args:
        name: ``before_...``, ``after_...`` or ``on_...``.
        doc: When it fires, in one line.
        args: Names of what its calls receive besides the run.
        clock: The counter that moves between two firings, if one does. An interval in that unit
            can limit a hook here.
        ahead: Whether the point fires before that counter moves.
        within: Whether it lies within the update, which is the user's own in `Trainer.loop`.

    >>> Point("after_generate", "when samples were drawn", args=("samples",)).signature
    'after_generate(run, samples)'
    """

    name: str
    doc: str = ""
    args: tuple[str, ...] = ()
    clock: Clock | None = None
    ahead: bool = False  # Then an interval has to count the iteration or epoch that is under way.
    within: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise HookError(
                f"'{self.name}' cannot be a mount point: its name must be lower case and begin "
                "with before_, after_ or on_."
            )

    @property
    def is_busy(self) -> bool:
        """Whether it may fire in every iteration, so that each microsecond counts."""
        # A project may fire a point of its own as often as it likes.
        return self.within or self.name.endswith("_iter") or self not in POINTS

    @property
    def signature(self) -> str:
        """How a hook defines it."""
        return f"{self.name}({', '.join(('run', *self.args))})"


class _Row:
    """A row of the table; the name of its attribute is the name of the point.

    On the class the attribute is the point. On a plan it is the calls that the plan compiled for
    the point: the plan sets an attribute of the same name, which Python finds before this one.
    """

    def __init__(
        self,
        doc: str,
        *,
        args: tuple[str, ...] = (),
        clock: Clock | None = None,
        ahead: bool = False,
        within: bool = False,
    ) -> None:
        self._doc, self._args = doc, args
        self._clock, self._ahead, self._within = clock, ahead, within

    def __set_name__(self, owner: type, name: str) -> None:
        self.point = Point(name, self._doc, self._args, self._clock, self._ahead, self._within)

    @overload
    def __get__(self, plan: None, owner: type) -> Point: ...
    @overload
    def __get__(self, plan: MountPoints, owner: type) -> Calls: ...
    def __get__(self, plan: MountPoints | None, owner: type) -> Point | Calls:
        if plan is not None:
            raise AttributeError(f"'{self.point.name}' is not compiled yet.")
        return self.point


class MountPoints:
    """The points of the engine, in the order in which they first fire."""

    before_run = _Row("first of all, in every call of train, validate, test and predict")
    after_load_checkpoint = _Row(
        "a checkpoint was read and is about to be restored; its entries may be changed",
        args=("checkpoint",),
    )
    before_train = _Row("everything is restored, training is about to begin")
    before_epoch = _Row("an epoch begins", clock="epochs", ahead=True)
    before_train_epoch = _Row("a pass over the training data begins", clock="epochs", ahead=True)
    before_train_iter = _Row("the batch is there, nothing is done", clock="iters", ahead=True)
    before_forward = _Row("run.batch may be replaced; in every phase", within=True)
    after_forward = _Row("run.output is there and may be replaced; in every phase", within=True)
    after_loss = _Row("run.loss is there and may be replaced; except in predict", within=True)
    after_backward = _Row("the gradients of a microbatch were added", within=True)
    before_update = _Row(
        "gradients are complete and unscaled", clock="iters", ahead=True, within=True
    )
    after_update = _Row("the optimizer has stepped", clock="iters", ahead=True, within=True)
    after_train_iter = _Row("the iteration is done and counted", clock="iters")
    after_train_epoch = _Row("the training pass is done and counted", clock="epochs")
    before_val = _Row("a validation begins")
    before_val_epoch = _Row("the model is in evaluation mode, the first stream is next")
    before_val_iter = _Row("a validation batch is there")
    after_val_iter = _Row("a validation batch is done")
    after_val_epoch = _Row("all streams are done, the metrics are known", args=("metrics",))
    after_val = _Row("the validation is over")
    after_epoch = _Row("training and the validation that belongs to it are done", clock="epochs")
    after_epoch_profile = _Row("after every hook's after_epoch", clock="epochs")
    after_train = _Row("training ended by itself or was asked to stop")
    before_test = _Row("a test begins")
    before_test_epoch = _Row("the model is in evaluation mode, the first stream is next")
    before_test_iter = _Row("a test batch is there")
    after_test_iter = _Row("a test batch is done")
    after_test_epoch = _Row("all streams are done, the metrics are known", args=("metrics",))
    after_test = _Row("the test is over")
    before_predict = _Row("a prediction begins")
    before_predict_epoch = _Row("the model is in evaluation mode, the first stream is next")
    before_predict_iter = _Row("a batch to predict is there")
    after_predict_iter = _Row("the output for a batch is there and may be replaced")
    after_predict_epoch = _Row("all streams are done")
    after_predict = _Row("the prediction is over")
    before_save_checkpoint = _Row(
        "a checkpoint is gathered and about to be written; entries may be added",
        args=("checkpoint",),
    )
    after_save_checkpoint = _Row("a checkpoint is written", args=("saved",))
    after_rewind = _Row("the run went back to a checkpoint and is restored", args=("rewind",))
    on_stop = _Row("the loop obeys a request to stop", args=("reason",))
    on_exception = _Row("an exception leaves the loop", args=("error",))
    after_run = _Row("last of all, also after a failure; run.outcome tells how it ended")


POINTS = tuple(row.point for row in vars(MountPoints).values() if isinstance(row, _Row))


class PointTable(dict[str, Point]):
    """The points of one run: the engine's and those that the project declared."""

    def __init__(self, own: Iterable[Point | str] = ()) -> None:
        super().__init__({point.name: point for point in POINTS})
        for declared in own:
            point = Point(declared) if isinstance(declared, str) else declared
            if point.name in self:
                raise HookError(f"The mount point '{point.name}' is declared twice.")
            self[point.name] = point

    def __missing__(self, name: str) -> Point:  # So that every look-up of a typo gets a hint.
        if not isinstance(name, str):  # `@trainer.on` without the point.
            raise HookError(f"{name!r} is not the name of a mount point, such as 'after_epoch'.")
        hint = suggestion(name, peers.POINTS, self)
        raise HookError(
            f"'{name}' is not a mount point.{hint} 'hookloop points' lists all {len(POINTS)}; "
            f"declare one of your own with Trainer(points=['{name}'])."
        )
