"""The loader as hooks see it: they set its ``_iterator`` to None to get new workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

if TYPE_CHECKING:
    from hookloop.dialects import TrainingStream


def loader_view(data: object, stream: TrainingStream | None) -> object:
    """Return a loader that is the given one in everything but ``view._iterator = None``.

    That asks the stream, which reads a copy of the loader, for new workers. Other data is returned
    as it is.
    """
    if stream is None or not isinstance(data, DataLoader):
        return data
    kind = type(data)

    def set_attribute(view: Any, name: str, value: object) -> None:  # noqa: ANN401
        if name == "_iterator" and value is None:
            stream.restart_workers()
        kind.__setattr__(view, name, value)

    methods = {"__setattr__": set_attribute, "__module__": kind.__module__}
    view: object = object.__new__(type(kind.__name__, (kind,), methods))
    object.__setattr__(view, "__dict__", vars(data))  # The same attributes, not a copy of them.
    return view
