"""Objects that are found again by their names, from anywhere in a program."""

from __future__ import annotations

from typing import ClassVar, Self, cast


class Named:
    """Keeps the objects of a class by name; the one made or asked for last is the current one.

    Attributes:
        _instances: Where they are kept; each class that is not to share them has its own.
    """

    _instances: ClassVar[dict[str, object]]

    @classmethod
    def get_instance(cls, name: str, **kwargs: object) -> Self:
        """Return the object of a name, made when it is new; it is the current one from then on."""
        one = cls._instances.pop(name, None) or cls(name, **kwargs)  # type: ignore[call-arg]
        cls._instances[name] = one
        return cast("Self", one)

    @classmethod
    def get_current_instance(cls) -> Self:
        """Return the object made or asked for last."""
        if not cls._instances:
            cls.get_instance("mmengine")
        return cast("Self", next(reversed(cls._instances.values())))

    @classmethod
    def check_instance_created(cls, name: str) -> bool:
        """Tell whether there is an object of a name."""
        return name in cls._instances
