"""`SkipZerothEpoch`: emloop's ``main_loop.skip_zeroth_epoch``."""

from __future__ import annotations

from collections.abc import Sequence

from hookloop import Hook, Run
from hookloop.dialects import Catalogued, facade_in
from hookloop_dialects.emloop.main_loop import MainLoop


class SkipZerothEpoch(Catalogued):
    """Skip emloop's evaluation of every stream before the training.

    In emloop this is a setting of the main loop; here it is listed with the hooks.

    Args:
        kwargs: The arguments that emloop passes to every hook; not used.
    """

    dialect = "emloop"

    def __init__(self, **kwargs: object) -> None:
        self.kwargs = kwargs

    def native_hooks(self) -> Sequence[Hook]:
        """Return the hook that turns the zeroth epoch off."""
        return [_Skip()]


class _Skip(Hook):
    """Turn the zeroth epoch off before the training."""

    name = "skip_zeroth_epoch"

    def before_run(self, run: Run) -> None:
        # The companion decides at before_train, so the position in the list does not matter.
        facade_in(run, MainLoop).companion.zeroth = False
