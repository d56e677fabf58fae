"""`Row`: a hook of ClassyVision or VISSL whose work native hooks do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from hookloop.dialects import Catalogued


class Row(Catalogued):
    """The base of such hooks; a subclass returns the native ones.

    A class of a project that derives from one may have events of its own, which are called too.
    """

    dialect = "vissl"

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make the hook from its settings."""
        return cls(**config)

    @classmethod
    def name(cls) -> str:
        """Return the name of the class."""
        return cls.__name__
