"""``mmengine.fileio.handlers``: the formats of files that `load` and `dump` know."""

from __future__ import annotations

import json
import pickle
from abc import ABC, abstractmethod
from typing import IO, Any, NoReturn

import numpy as np
import yaml

from hookloop_mmengine.missing import reject


class BaseFileHandler(ABC):
    """One format.

    Attributes:
        str_like: Whether its files are text.
    """

    str_like = True

    @abstractmethod
    def load_from_fileobj(self, file: IO[Any], **kwargs: Any) -> object:  # noqa: ANN401 - the format's
        """Read an open file."""

    @abstractmethod
    def dump_to_fileobj(self, obj: object, file: IO[Any], **kwargs: Any) -> None:  # noqa: ANN401
        """Write to an open file."""

    @abstractmethod
    def dump_to_str(self, obj: object, **kwargs: Any) -> str | bytes:  # noqa: ANN401
        """Return what would be written."""


class JsonHandler(BaseFileHandler):
    """JSON; sets, ranges and arrays become lists."""

    def load_from_fileobj(self, file: IO[Any], **kwargs: Any) -> object:  # noqa: ANN401
        return json.load(file, **kwargs)

    def dump_to_fileobj(self, obj: object, file: IO[Any], **kwargs: Any) -> None:  # noqa: ANN401
        file.write(self.dump_to_str(obj, **kwargs))

    def dump_to_str(self, obj: object, **kwargs: Any) -> str:  # noqa: ANN401
        return json.dumps(obj, **{"default": set_default, **kwargs})


class YamlHandler(BaseFileHandler):
    """YAML, without the tags that make objects of Python."""

    def load_from_fileobj(self, file: IO[Any], **kwargs: Any) -> object:  # noqa: ANN401
        return yaml.load(file, **{"Loader": yaml.SafeLoader, **kwargs})

    def dump_to_fileobj(self, obj: object, file: IO[Any], **kwargs: Any) -> None:  # noqa: ANN401
        yaml.dump(obj, file, **{"Dumper": yaml.SafeDumper, **kwargs})

    def dump_to_str(self, obj: object, **kwargs: Any) -> str:  # noqa: ANN401
        return str(yaml.dump(obj, **{"Dumper": yaml.SafeDumper, **kwargs}))


class PickleHandler(BaseFileHandler):
    """Pickles; those of plain data are read."""

    str_like = False

    def load_from_fileobj(self, file: IO[Any], **kwargs: Any) -> object:  # noqa: ANN401
        # Late, because it needs torch.
        from hookloop_mmengine.fileio.plain_pickle import load_plain

        return load_plain(file, **kwargs)

    def dump_to_fileobj(self, obj: object, file: IO[Any], **kwargs: Any) -> None:  # noqa: ANN401
        pickle.dump(obj, file, **{"protocol": 2, **kwargs})

    def dump_to_str(self, obj: object, **kwargs: Any) -> bytes:  # noqa: ANN401
        return pickle.dumps(obj, **{"protocol": 2, **kwargs})


def set_default(obj: object) -> object:
    """Return what JSON has for a value that it does not know."""
    if isinstance(obj, set | range):
        return list(obj)
    if isinstance(obj, np.ndarray):
        return obj.tolist()
    if isinstance(obj, np.generic):
        return obj.item()
    raise TypeError(f"{type(obj)} is unsupported for json dump")


file_handlers: dict[str, BaseFileHandler] = {
    "json": JsonHandler(),
    "yaml": YamlHandler(),
    "yml": YamlHandler(),
    "pickle": PickleHandler(),
    "pkl": PickleHandler(),
}


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
