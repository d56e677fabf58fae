"""``mmengine.config.Config``: the entries of a config and the file they come from."""

from __future__ import annotations

import copy
import json
import pprint
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import yaml

from hookloop_mmengine.config.config_dict import ConfigDict, attributed, merged, plain_dict
from hookloop_mmengine.config.reading import Filling, import_customs, read_file


class Config:
    """A config, with its entries as keys and as attributes.

    Args:
        cfg_dict: The entries.
        cfg_text: The text of the file.
        filename: The file.

    >>> cfg = Config(dict(a=1, b=dict(c=[1, dict(d=2)])))
    >>> cfg.merge_from_dict({"b.c.1.d": 3})
    >>> cfg.b.c[1].d, cfg.get("z", 0)
    (3, 0)
    """

    def __init__(
        self,
        cfg_dict: Mapping[str, object] | None = None,
        cfg_text: str | None = None,
        filename: str | Path | None = None,
        **_: object,
    ) -> None:
        if cfg_dict is not None and not isinstance(cfg_dict, Mapping):
            raise TypeError(f"cfg_dict must be a dict, but got {type(cfg_dict)}")
        # Through __dict__, because __setattr__ makes entries of the config.
        self.__dict__["_cfg_dict"] = ConfigDict(cfg_dict or {})
        self.__dict__["_filename"] = str(filename) if filename else None
        self.__dict__["_text"] = cfg_text or ""

    @classmethod
    def fromfile(
        cls,
        filename: str | Path,
        use_predefined_variables: bool = True,
        import_custom_modules: bool = True,
        use_environment_variables: bool = True,
        **_: object,
    ) -> Config:
        """Read a file."""
        path = Path(filename).expanduser().resolve()
        filled = Filling(use_predefined_variables, use_environment_variables)
        tree = read_file(path, fill=filled)
        if import_custom_modules:
            import_customs(tree)
        return cls(tree, path.read_text(encoding="utf-8"), path)

    @classmethod
    def fromstring(cls, cfg_str: str, file_format: str) -> Config:
        """Read text as if it were a file of that format."""
        # Reading a real file gives tracebacks and {{ fileDirname }} a path to name.
        with TemporaryDirectory() as directory:
            path = Path(directory) / f"config{file_format}"
            path.write_text(cfg_str, encoding="utf-8")
            return cls(read_file(path), cfg_str)

    @property
    def filename(self) -> str | None:
        """The file."""
        name: str | None = self.__dict__["_filename"]
        return name

    @property
    def text(self) -> str:
        """The text of the file."""
        return str(self.__dict__["_text"])

    @property
    def pretty_text(self) -> str:
        """The entries as Python, one assignment each."""
        # Sorted, so that two configs with the same entries have the same text.
        entries = sorted(self.to_dict().items())
        return "".join(f"{key} = {pprint.pformat(value, width=100)}\n" for key, value in entries)

    def merge_from_dict(self, options: Mapping[str, object], allow_list_keys: bool = True) -> None:
        """Change entries; a key may be a path, ``model.backbone.depth``.

        Numbers in a path are indices of lists, unless ``allow_list_keys`` is False.
        """
        for path, value in options.items():
            parts = path.split(".")
            holder: object = self._cfg_dict
            for part in parts[:-1]:
                holder = _child(holder, part, path, allow_list_keys)
            last = parts[-1]
            if isinstance(holder, list):
                old = _child(holder, last, path, allow_list_keys)
                both_dicts = isinstance(old, Mapping) and isinstance(value, Mapping)
                new = merged({last: old}, {last: value})[last] if both_dicts else value
                holder[int(last)] = attributed(new)
            elif isinstance(holder, ConfigDict):
                # Through `merged`, so that dicts are merged and `_delete_` works here, too.
                holder[last] = merged(holder, {last: value})[last]
            else:
                raise TypeError(f"'{path}': there is no entry '{last}' in {holder!r}.")

    def to_dict(self) -> dict[str, object]:
        """Return the entries as plain dicts."""
        return plain_dict(self._cfg_dict)

    def dump(self, file: str | Path | None = None) -> str | None:
        """Write the entries to a file in the format of its name, or return them as Python."""
        if file is None:
            return self.pretty_text
        path = Path(file)
        if path.suffix == ".json":
            # Classes and functions, which a Python config may hold, become text.
            text = json.dumps(self.to_dict(), default=str)
        elif path.suffix in (".yaml", ".yml"):
            text = yaml.safe_dump(self.to_dict())
        else:
            text = self.pretty_text
        path.write_text(text, encoding="utf-8")
        return None

    def __getattr__(self, name: str) -> object:
        # copy and pickle look for special methods before __init__ has set _cfg_dict.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["_cfg_dict"], name)

    def __setattr__(self, name: str, value: object) -> None:
        self._cfg_dict[name] = value

    def __getitem__(self, name: str) -> object:
        return self._cfg_dict[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._cfg_dict[name] = value

    def __delattr__(self, name: str) -> None:
        delattr(self._cfg_dict, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cfg_dict)

    def __len__(self) -> int:
        return len(self._cfg_dict)

    def __contains__(self, name: object) -> bool:
        return name in self._cfg_dict

    def __repr__(self) -> str:
        return f"Config (path: {self.filename}): {self.to_dict()}"

    def __deepcopy__(self, memo: dict[int, object]) -> Config:
        return type(self)(copy.deepcopy(self._cfg_dict, memo), self.text, self.filename)

    @property
    def _cfg_dict(self) -> ConfigDict:
        entries: ConfigDict = self.__dict__["_cfg_dict"]
        return entries


def _child(holder: object, part: str, path: str, allow_list_keys: bool) -> object:
    """Return an entry on the way of a path; a dict makes it when it is missing."""
    if isinstance(holder, ConfigDict):
        return holder.setdefault(part, ConfigDict())
    if not isinstance(holder, list):
        raise TypeError(f"'{path}': there is no entry '{part}' in {holder!r}.")
    if not (allow_list_keys and part.isdigit()):
        raise TypeError(f"'{path}': '{part}' is not an index of the list {holder!r}.")
    if int(part) >= len(holder):
        raise KeyError(f"'{path}': Index {part} does not exist in list {holder!r}")
    return cast("object", holder[int(part)])
