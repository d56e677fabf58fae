"""``mmengine.hooks.sampler_seed_hook``: the hook that gives samplers the epoch."""

from __future__ import annotations

from hookloop_mmengine.hooks.simple_hooks import DistSamplerSeedHook

__all__ = ["DistSamplerSeedHook"]
