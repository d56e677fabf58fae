"""The hooks of ClassyVision and VISSL by name."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.hooks import MODULES as CLASSY
from hookloop_dialects.vissl.hooks import MODULES as SSL

_SSL = "hookloop_dialects.vissl.hooks"

CATALOGUE: dict[str, str] = {
    **{name: f"{module}:{name}" for name, module in CLASSY.items()},
    # Without the lazy names that are not classes, such as default_hook_generator.
    **{name: f"{_SSL}.{module}:{name}" for name, module in SSL.items() if name[0].isupper()},
}
