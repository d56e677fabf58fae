"""Names of MMEngine that this dialect does not offer, and what to use instead."""

from __future__ import annotations

from typing import NoReturn

_WRITER = "the native hook {} among custom_hooks"

MISSING = {
    "WandbVisBackend": _WRITER.format("hookloop.hooks.WriteWandb"),
    "MLflowVisBackend": _WRITER.format("hookloop.hooks.WriteMLflow"),
    **dict.fromkeys(
        ("ClearMLVisBackend", "NeptuneVisBackend", "DVCLiveVisBackend", "AimVisBackend"),
        "LocalVisBackend, TensorboardVisBackend, or a subclass of BaseVisBackend",
    ),
    "FlexibleRunner": "Runner, with launcher='pytorch' for several processes",
    "BaseDataset": "a torch Dataset with the attribute metainfo",
}


def message_for(name: str) -> str:
    """Return the message that a name is not offered, with the replacement."""
    return f"MMEngine's {name} is not offered by hookloop. Use {MISSING[name]}."


def reject(module: str, name: str) -> NoReturn:
    """Reject the import of a name; the message names the replacement if MMEngine has the name."""
    if name in MISSING:
        # Not an AttributeError: `from module import name` would replace its message.
        raise ImportError(message_for(name), name=module)
    raise AttributeError(f"module '{module}' has no attribute '{name}'")
