"""`Replaceable`: a catalogued hook whose methods a subclass may override."""

from __future__ import annotations

from typing import ClassVar

from hookloop.dialects import Catalogued


class Replaceable(Catalogued):
    """A hook that native hooks replace, unless a subclass overrides one of its methods.

    Then the methods are called as MMEngine calls them, so that the override has its effect; the
    native hooks would still do the work of the base class.

    Attributes:
        own: The methods that the native hooks replace.
    """

    own: ClassVar[tuple[str, ...]] = ()

    @property
    def acts_itself(self) -> bool:
        """Whether the methods are called and not the native hooks."""
        own_class = type(self)
        base = next(ancestor for ancestor in own_class.__mro__ if Replaceable in ancestor.__bases__)
        return any(getattr(own_class, name) is not getattr(base, name) for name in self.own)
