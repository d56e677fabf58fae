"""The stand-in for ``vissl.data``."""

from __future__ import annotations

from hookloop_dialects.vissl.data.ssl_dataset import AirstoreDataset, GenericSSLDataset

__all__ = ["AirstoreDataset", "GenericSSLDataset"]
