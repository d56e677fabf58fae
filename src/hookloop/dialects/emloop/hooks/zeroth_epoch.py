"""`SkipZerothEpoch`: emloop's ``main_loop.skip_zeroth_epoch``."""

from __future__ import annotations

from collections.abc import Sequence

from hookloop.core.hook import Hook
from hookloop.core.run import Run
from hookloop.dialects.adapter import Catalogued
from hookloop.dialects.companion import facade_in
from hookloop.dialects.emloop.main_loop import MainLoop


class SkipZerothEpoch(Catalogued):
    """Begin with the training, without emloop's evaluation of every stream before it.

    In emloop this is a setting of the main loop; here it stands among the hooks.

    Args:
        kwargs: What emloop gives to every hook; not needed.
    """

    dialect = "emloop"

    def __init__(self, **kwargs: object) -> None:
        self.kwargs = kwargs

    def native_hooks(self) -> Sequence[Hook]:
        """Return what tells the dialect."""
        return [_Skip()]


class _Skip(Hook):
    """Says so before the training."""

    name = "skip_zeroth_epoch"

    def before_run(self, run: Run) -> None:
        facade_in(run, MainLoop).companion.zeroth = False
