"""``vissl.utils.fsdp_utils``: fairscale's sharded models, which are not offered."""

from __future__ import annotations

from hookloop_dialects.vissl.not_offered import (
    fsdp_auto_wrap_bn,
    fsdp_recursive_reset_lazy_init,
    fsdp_wrapper,
)

__all__ = ["fsdp_auto_wrap_bn", "fsdp_recursive_reset_lazy_init", "fsdp_wrapper"]
