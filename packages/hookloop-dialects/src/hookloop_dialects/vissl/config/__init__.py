"""The stand-in for ``vissl.config``."""

from __future__ import annotations

from hookloop_dialects.vissl.config.attr_dict import AttrDict

__all__ = ["AttrDict"]
