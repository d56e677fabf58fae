"""`StopOnPlateau`: end a training that stops improving."""

from __future__ import annotations

from hookloop_dialects.emloop.hooks.abstract_hook import TrainingTerminated
from hookloop_dialects.emloop.hooks.on_plateau import OnPlateau


class StopOnPlateau(OnPlateau):
    """End the training when the last epochs are worse than those before; see `OnPlateau`."""

    ends_training = True

    def _on_plateau_action(self, **_: object) -> None:
        raise TrainingTerminated(f"'{self._variable}' of '{self._stream}' is on a plateau")
