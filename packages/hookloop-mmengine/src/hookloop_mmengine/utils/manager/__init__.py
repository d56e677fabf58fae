"""``mmengine.utils.manager``: objects that can be found by name from anywhere in a program."""

from __future__ import annotations

from hookloop_mmengine.utils.manager.manager_mixin import ManagerMeta, ManagerMixin

__all__ = ["ManagerMeta", "ManagerMixin"]
