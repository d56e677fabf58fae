"""iMIX's own hooks by the names that its document gives them."""

from __future__ import annotations

from hookloop.dialects.imix.engine.hooks import MODULES

CATALOGUE: dict[str, str] = {
    name: f"hookloop.dialects.imix.engine.hooks.{module}:{name}" for name, module in MODULES.items()
}
