"""``lightning.pytorch.utilities.exceptions``."""

from __future__ import annotations


class MisconfigurationException(Exception):
    """Raised by callbacks that are used in a wrong way."""
