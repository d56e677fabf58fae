"""iMIX's own hooks by the names in its document."""

from __future__ import annotations

from hookloop_dialects.imix.engine.hooks import MODULES

CATALOGUE: dict[str, str] = {
    name: f"hookloop_dialects.imix.engine.hooks.{module}:{name}" for name, module in MODULES.items()
}
