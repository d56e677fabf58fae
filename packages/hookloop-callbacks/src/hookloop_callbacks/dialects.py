"""The two dialects; the entry points in pyproject.toml refer to these names.

What a dialect is made of is imported only when a run has one of its callbacks.
"""

from __future__ import annotations

from hookloop import Hook
from hookloop.dialects import Dialect

_STAND_INS = "hookloop_callbacks.stand_ins"


def _adapt_lightning(callback: object) -> list[Hook]:
    from hookloop_callbacks.on_lightning.adapter import adapt

    return adapt(callback)


LIGHTNING = Dialect(
    name="lightning",
    bases=(
        ("lightning", "Callback"),
        ("pytorch_lightning", "Callback"),
        (f"{_STAND_INS}.lightning", "Callback"),
    ),
    adapt=_adapt_lightning,
    packages={
        "lightning": f"{_STAND_INS}.lightning",
        "pytorch_lightning": f"{_STAND_INS}.lightning.pytorch",
        "lightning_fabric": f"{_STAND_INS}.lightning.fabric",
    },
)


def _adapt_transformers(callback: object) -> list[Hook]:
    from hookloop_callbacks.on_transformers.adapter import adapt

    return adapt(callback)


TRANSFORMERS = Dialect(
    name="transformers",
    bases=(
        ("transformers", "TrainerCallback"),
        (f"{_STAND_INS}.transformers", "TrainerCallback"),
    ),
    adapt=_adapt_transformers,
    packages={"transformers": f"{_STAND_INS}.transformers"},
)
