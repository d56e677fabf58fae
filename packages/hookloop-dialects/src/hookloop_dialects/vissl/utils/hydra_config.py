"""``vissl.utils.hydra_config``: configs as `AttrDict`."""

from __future__ import annotations

from hookloop_dialects.vissl.config.attr_dict import AttrDict

__all__ = ["AttrDict"]
