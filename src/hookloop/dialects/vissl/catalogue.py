"""The hooks of ClassyVision and VISSL by their names."""

from __future__ import annotations

from hookloop.dialects.vissl.classy_vision.hooks import MODULES as CLASSY
from hookloop.dialects.vissl.hooks import MODULES as SSL

_SSL = "hookloop.dialects.vissl.hooks"

CATALOGUE: dict[str, str] = {
    **{name: f"{module}:{name}" for name, module in CLASSY.items()},
    **{name: f"{_SSL}.{module}:{name}" for name, module in SSL.items() if name[0].isupper()},
}
