"""``mmengine.registry.utils``: the scope of a project, and what its registries hold."""

from __future__ import annotations

from hookloop_mmengine.registry.default_scope import init_default_scope
from hookloop_mmengine.registry.scan import (
    count_registered_modules,
    traverse_registry_tree,
)

__all__ = ["count_registered_modules", "init_default_scope", "traverse_registry_tree"]
