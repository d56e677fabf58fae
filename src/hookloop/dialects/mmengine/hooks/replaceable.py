"""`Replaceable`: a row of the catalogue whose methods a subclass may override."""

from __future__ import annotations

from typing import ClassVar

from hookloop.dialects.adapter import Catalogued


class Replaceable(Catalogued):
    """A row that native hooks stand for, until a subclass changes one of its methods.

    Then the methods are called as MMEngine calls them, so that ``super()`` and what is left out
    have their effect; the native hooks would go on with the unchanged work.

    Attributes:
        own: Names of the methods that the native hooks stand for.
    """

    own: ClassVar[tuple[str, ...]] = ()

    @property
    def acts_itself(self) -> bool:
        """Whether the methods are called, and no native hooks."""
        kind = type(self)
        row = next(one for one in kind.__mro__ if Replaceable in one.__bases__)
        return any(getattr(kind, name) is not getattr(row, name) for name in self.own)
