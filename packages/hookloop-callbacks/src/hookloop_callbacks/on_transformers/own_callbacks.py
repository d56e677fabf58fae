"""Callbacks of Transformers' own, when it is installed: those that send the run to a service.

All others run as they are. These are rejected, with what does their work here.
"""

from __future__ import annotations

from hookloop.errors import HookError

_PACKAGE = "transformers."

INSTEAD = {
    "AzureMLCallback": "hookloop.hooks.WriteMLflow",
    "ClearMLCallback": "hookloop.hooks.WriteClearML",
    "CometCallback": "hookloop.hooks.WriteComet",
    "MLflowCallback": "hookloop.hooks.WriteMLflow",
    "TensorBoardCallback": "hookloop.hooks.WriteTensorBoard",
    "TrackioCallback": "hookloop.hooks.WriteTrackio",
    "WandbCallback": "hookloop.hooks.WriteWandb",
}
_OTHERS = "hookloop.hooks.WriteTo with a writer of your own"


def check_own_callback(callback: object) -> None:
    """Reject a callback that sends a run of Transformers' own Trainer to a service."""
    for kind in type(callback).__mro__:
        if f"{kind.__module__}.".startswith(f"{_PACKAGE}integrations."):
            raise HookError(
                f"{type(callback).__name__} sends what Transformers' own Trainer has to a "
                f"service: use {INSTEAD.get(kind.__name__, _OTHERS)} instead."
            )
