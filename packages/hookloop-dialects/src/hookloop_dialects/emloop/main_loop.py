"""`MainLoop`: the run as emloop's hooks see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from hookloop.dialects import (
    Facade,
    internals_of,
)
from hookloop.errors import HookError, nearest
from hookloop_dialects.emloop.companion import EmloopCompanion
from hookloop_dialects.emloop.cycle import TRAIN, Cycle, stream_name

if TYPE_CHECKING:
    from hookloop import Run


class MainLoop(Facade):
    """The object in a hook's ``self._main_loop``."""

    role = "main_loop"
    loggers = ("emloop", "root")  # Hook files call logging.info.
    hints: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "_model": "the constructor's argument 'model', or run.model of a native hook",
            "_dataset": "the constructor's argument 'dataset'",
            "_hooks": "run.hooks of a native hook",
            "_epoch_profile": "the argument 'profile' of after_epoch_profile",
            "epoch": "trainer.train()",
            "run_training": "trainer.train()",
            "run_evaluation": "trainer.validate() or trainer.test()",
        }
    )

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.cycle = Cycle()
        self.companion = EmloopCompanion(self.cycle)

    @property
    def training_epochs_done(self) -> int:
        """Epochs trained; 0 during and after the zeroth epoch."""
        return self.run.progress.epoch

    @property
    def fixed_epoch_size(self) -> int | None:
        """Iterations per epoch, if known."""
        return self.run.progress.epoch_iters

    @property
    def extra_streams(self) -> list[str]:
        """Names of the streams that are evaluated after each training pass."""
        # During the zeroth epoch the training data is among the validation data.
        return [name for name in map(stream_name, self.run.val_data) if name != TRAIN]

    def get_stream(self, stream: str) -> Iterable[object]:
        """Return the batches of a stream."""
        sources: dict[str, Iterable[object]] = {
            stream_name(name): data for name, data in self.run.val_data.items()
        }
        sources |= {
            stream_name(name, "test"): data
            for name, data in internals_of(self.run).test_data.items()
        }
        # Last, so that it replaces the zeroth epoch's copy.
        if self.run.train_data is not None:
            sources[TRAIN] = self.run.train_data
        if stream not in sources:
            raise HookError(
                f"There is no stream '{stream}'.{nearest(stream, sources)} "
                f"Available: {', '.join(sources)}."
            )
        return sources[stream]
