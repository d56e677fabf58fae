"""``lightning.fabric``."""

from __future__ import annotations

from hookloop_callbacks.stand_ins.lightning.seed import seed_everything

__all__ = ["seed_everything"]
