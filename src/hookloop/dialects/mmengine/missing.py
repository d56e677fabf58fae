"""What MMEngine has and this dialect does not, and what to use instead."""

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
    "FlexibleRunner": "Runner; training in several processes is not offered yet",
    "BaseDataset": "a torch Dataset with the attribute metainfo",
}


def told(name: str) -> str:
    """Say that a name is not offered, and what is."""
    return f"MMEngine's {name} is not offered by hookloop. Use {MISSING[name]}."


def refuse(module: str, name: str) -> NoReturn:
    """Refuse to import a name: plainly, if it is one of MMEngine's."""
    if name in MISSING:
        raise ImportError(told(name), name=module)
    raise AttributeError(f"module '{module}' has no attribute '{name}'")
