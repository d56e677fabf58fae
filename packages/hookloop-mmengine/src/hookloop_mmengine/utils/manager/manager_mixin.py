"""``mmengine.utils.ManagerMixin``: objects that can be found by name from anywhere in a program."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, ClassVar, Self, cast


class ManagerMeta(type):
    """Give each class a dict of its own for its objects; its constructor needs ``name``."""

    _instance_dict: dict[str, object]

    def __init__(cls, *args: Any) -> None:  # noqa: ANN401 - as for type
        if "name" not in inspect.signature(cls.__init__).parameters:  # type: ignore[misc]
            raise AssertionError(f"{cls} must have the `name` argument")
        cls._instance_dict = {}
        super().__init__(*args)


class ManagerMixin(metaclass=ManagerMeta):
    """Keep the objects of a class by name; the newest one is the current one.

    Args:
        name: The name by which `get_instance` finds this object.

    Attributes:
        _instance_dict: The objects of this class by name, in the order of their creation.
    """

    _instance_dict: ClassVar[dict[str, object]]

    def __init__(self, name: str = "", **kwargs: object) -> None:
        if not (name and isinstance(name, str)):
            raise AssertionError("name argument must be an non-empty string.")
        self._instance_name = name

    @property
    def instance_name(self) -> str:
        """The name by which `get_instance` finds this object."""
        return self._instance_name

    @classmethod
    def get_instance(cls, name: str, **kwargs: object) -> Self:
        """Return the object of a name; a new name makes an object, which is the current one."""
        if not isinstance(name, str):
            raise AssertionError(f"type of name should be str, but got {type(name)}")
        if name not in cls._instance_dict:
            cls._instance_dict[name] = cls(name=name, **kwargs)
        elif kwargs:
            warnings.warn(
                f"{cls} instance named of {name} has been created, the method `get_instance` "
                "should not accept any other arguments",
                stacklevel=2,
            )
        return cast("Self", cls._instance_dict[name])

    @classmethod
    def get_current_instance(cls) -> Self:
        """Return the newest object."""
        if not cls._instance_dict:
            raise RuntimeError(
                f"Before calling {cls.__name__}.get_current_instance(), you should call "
                "get_instance(name=xxx) at least once."
            )
        # Dicts keep the order of insertion, so the last entry is the newest.
        return cast("Self", next(reversed(cls._instance_dict.values())))

    @classmethod
    def check_instance_created(cls, name: str) -> bool:
        """Return whether there is an object of a name."""
        return name in cls._instance_dict
