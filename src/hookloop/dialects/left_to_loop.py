"""`LeftToLoop`: an attribute of a facade that is the loop's own; setting it is rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop.dialects.adapter import Facade


class LeftToLoop:
    """Rejects an attribute that hooks set on the real object to change its loop.

    On the facade it would be kept and nothing would read it. The hint of its name says what to
    use instead.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, facade: Facade | None, owner: type) -> NoReturn:
        raise AttributeError(self._name)  # The facade then raises its own error, with the hint.

    def __set__(self, facade: Facade, value: object) -> None:
        name, role = self._name, facade.role
        raise HookError(
            f"The hook '{facade.hook}' sets {role}.{name}, which is left to the loop. Use "
            f"{facade.hints[name]} instead."
        )
