"""``cxflow.hooks.accumulating_hook``: `AccumulateVariables` under its older name."""

from __future__ import annotations

from hookloop_dialects.emloop.hooks.accumulate_variables import AccumulateVariables

AccumulatingHook = AccumulateVariables

__all__ = ["AccumulatingHook"]
