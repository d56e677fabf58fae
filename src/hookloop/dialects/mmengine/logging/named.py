"""Objects that can be found by name from anywhere in a program."""

from __future__ import annotations

from typing import ClassVar, Self, cast


class Named:
    """Keep the objects of a class by name; the newest one is the current one.

    Attributes:
        _instances: The objects by name, in the order of their creation. Each class defines its
            own dict, or it would share the objects of its base.
    """

    _instances: ClassVar[dict[str, object]]

    @classmethod
    def get_instance(cls, name: str, **kwargs: object) -> Self:
        """Return the object of a name; a new name makes an object, which is the current one."""
        if not isinstance(name, str):
            raise AssertionError(f"type of name should be str, but got {type(name)}")
        if name not in cls._instances:
            cls._instances[name] = cls(name, **kwargs)  # type: ignore[call-arg]
        return cast("Self", cls._instances[name])

    @classmethod
    def get_current_instance(cls) -> Self:
        """Return the newest object."""
        if not cls._instances:
            cls.get_instance("mmengine")
        # Dicts keep the order of insertion, so the last entry is the newest.
        return cast("Self", next(reversed(cls._instances.values())))

    @classmethod
    def check_instance_created(cls, name: str) -> bool:
        """Return whether there is an object of a name."""
        return name in cls._instances
