"""``pointrix.hook.hook``: the base class, in the module of older versions."""

from __future__ import annotations

from hookloop_dialects.pointrix.hook.base_hook import HOOK_REGISTRY, Hook

__all__ = ["HOOK_REGISTRY", "Hook"]
