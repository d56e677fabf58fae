"""Pickles of plain data: they are read without running code.

MMEngine reads pickles with Python's own reader, which imports and calls whatever a file names. Here
a file may hold numbers, text, containers, arrays and tensors, and everything else is rejected.
"""

from __future__ import annotations

import io
import pickle
from typing import IO

import torch

_BUILTINS = {"set", "frozenset", "complex", "bytearray", "range", "slice"}
_PLAIN = {
    "builtins": _BUILTINS,
    "__builtin__": _BUILTINS,  # Their name in older protocols.
    "collections": {"OrderedDict", "defaultdict", "deque", "Counter"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "numpy": {"dtype", "ndarray"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.numeric": {"_frombuffer"},
    "numpy._core.numeric": {"_frombuffer"},
    "torch": {"Size", "device"},
    "torch._utils": {"_rebuild_tensor_v2"},
    "_codecs": {"encode"},
}


class PlainUnpickler(pickle.Unpickler):
    """Reads plain data and imports nothing else."""

    def find_class(self, module_name: str, global_name: str) -> object:
        """Return a type of plain data; reject all others."""
        if (module_name, global_name) == ("torch.storage", "_load_from_bytes"):
            return _storage
        if global_name in _PLAIN.get(module_name, ()):
            return super().find_class(module_name, global_name)
        raise pickle.UnpicklingError(
            f"The file names '{module_name}.{global_name}', and only plain data is read: a pickle "
            "can run any code. If you trust it, read it with the module pickle in your own code."
        )


def _storage(data: bytes) -> object:
    return torch.load(io.BytesIO(data), weights_only=True)


def load_plain(file: IO[bytes]) -> object:
    """Read a pickle of plain data."""
    return PlainUnpickler(file).load()
