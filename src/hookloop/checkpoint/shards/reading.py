"""Read a checkpoint that is a directory of shards, on any number of ranks.

All files are compared with the manifest before torch opens one of them, and nothing in them runs.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from hookloop.checkpoint.shards.dtensors import is_sharded
from hookloop.checkpoint.shards.layout import read_layout
from hookloop.checkpoint.shards.manifest import Manifest, open_plain, verify
from hookloop.checkpoint.shards.parts import MODEL, OPTIMIZERS, check_rest, put_back
from hookloop.checkpoint.shards.parts import Path as Steps
from hookloop.checkpoint.shards.writing import STATE
from hookloop.checkpoint.state.optimizers import load_optimizer_state, parameter_names
from hookloop.checkpoint.store.limits import check_archive, check_contents
from hookloop.errors import CheckpointError, nearest

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup
    from torch.distributed.checkpoint.filesystem import FileSystemReader, _StorageInfo
    from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
    from typing_extensions import Buffer  # In typing from Python 3.12 on.


Paths = Mapping[str, list[str | int]]


@dataclass(frozen=True)
class Shards:
    """A directory whose files were verified, opened for reading.

    Attributes:
        directory: Where it is.
        manifest: Its list of files.
        layout: torch's description of its tensors.
        state: What is not a tensor of the shards.
        paths: Where each tensor belongs in the state.
    """

    directory: Path
    manifest: Manifest
    layout: Metadata
    state: dict[str, object]
    paths: Mapping[str, Steps]

    @classmethod
    def open(cls, directory: str | Path, rank: int = 0, size: int = 1) -> Shards:
        """Verify a directory and read all but its tensors.

        Args:
            directory: The checkpoint.
            rank: With several ranks, each verifies its share; all must agree before they go on.
            size: The number of ranks.
        """
        directory = Path(directory)
        manifest = verify(directory, rank, size)
        layout = read_layout(directory, manifest)
        rest = _read_rest(directory / STATE)
        paths = {key: tuple(path) for key, path in cast("Paths", rest["paths"]).items()}
        if lost := sorted(set(paths) ^ set(layout.state_dict_metadata)):
            raise CheckpointError(
                f"'{directory}' is damaged: '{lost[0]}' is in only one of its two lists of tensors."
            )
        return cls(directory, manifest, layout, cast("dict[str, object]", rest["state"]), paths)

    def form(self, key: str) -> TensorStorageMetadata:
        """Return the shape and the type of a tensor."""
        return cast("TensorStorageMetadata", self.layout.state_dict_metadata[key])

    def empty(self, key: str, like: Tensor | None = None) -> Tensor:
        """Make a tensor to read into, cut as another one is if that has the same shape."""
        form = self.form(key)
        dtype = form.properties.dtype
        if like is not None and is_sharded(like) and like.shape == form.size:
            return torch.zeros_like(like, dtype=dtype, requires_grad=False)
        return torch.zeros(form.size, dtype=dtype)

    def read(self, targets: Mapping[str, Tensor]) -> None:
        """Fill tensors, each with what was saved under its key; a DTensor gets its own part."""
        from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner

        self._check(targets)
        reader, planner = self._reader(), DefaultLoadPlanner(flatten_state_dict=False)
        try:
            # As torch's own `load` does it, without the exchange between ranks: each reads what
            # it needs, and an error is not one of all of them.
            planner.set_up_planner(dict(targets), self.layout, is_coordinator=True)
            reader.set_up_storage_reader(self.layout, is_coordinator=True)
            plan = reader.prepare_local_plan(planner.create_local_plan())
            (plan,) = reader.prepare_global_plan(planner.create_global_plan([plan]))
            with torch.no_grad():
                reader.read_data(planner.finish_plan(plan), planner).wait()
        except Exception as error:  # torch raises errors of nearly any type here.
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise CheckpointError(f"'{self.directory}' cannot be read: {reason}") from error

    def read_all(self, part: str | None = None) -> dict[str, object]:
        """Return the checkpoint as one file would hold it, with whole tensors.

        Args:
            part: Read the tensors of this part only.
        """
        state = self.state
        for key, path in self.paths.items():
            if part is None or path[0] == part:
                tensor = self.empty(key)
                self.read({key: tensor})
                self.put_back(state, key, tensor)
        return state

    def read_rest(self) -> dict[str, object]:
        """Return all but the model and the optimizers, with whole tensors."""
        for key, path in self.paths.items():
            if path[0] not in (MODEL, OPTIMIZERS):
                tensor = self.empty(key)
                self.read({key: tensor})
                self.put_back(self.state, key, tensor)
        left = (MODEL, OPTIMIZERS)
        return {part: value for part, value in self.state.items() if part not in left}

    def put_back(self, state: dict[str, object], key: str, tensor: Tensor) -> None:
        """Put a tensor into its place in a state."""
        try:
            put_back(state, self.paths[key], tensor)
        except ValueError as error:
            raise CheckpointError(f"'{self.directory}' is damaged: {error}.") from error

    def _check(self, targets: Mapping[str, Tensor]) -> None:
        known = self.layout.state_dict_metadata
        for key, target in targets.items():
            if key not in known:
                raise CheckpointError(f"'{self.directory}' has no '{key}'.{nearest(key, known)}")
            if (size := self.form(key).size) != target.shape:
                raise CheckpointError(
                    f"'{self.directory}' does not fit: '{key}' is {tuple(size)} in it and "
                    f"{tuple(target.shape)} here."
                )

    def _reader(self) -> FileSystemReader:
        return _reader_class()(self.directory)


def load_into(
    model: Module,
    optimizers: Mapping[str, Optimizer],
    directory: str | Path,
    group: ProcessGroup | None = None,
) -> dict[str, object]:
    """Restore a model and its optimizers, sharded over any number of ranks or whole.

    All ranks of the group must call it. The directory may have been written by another number.

    Args:
        model: The model.
        optimizers: Its optimizers by name.
        directory: The checkpoint.
        group: The ranks, which share the verification; None for a process alone.

    Returns:
        The rest of the checkpoint: everything but the model and the optimizers, with whole tensors.

    Raises:
        CheckpointError: On all ranks, if it is damaged or does not fit.
    """
    rank, size = (group.rank(), group.size()) if group is not None else (0, 1)
    with _Agreement(group) as agreement:
        shards = Shards.open(directory, rank, size)
    agreement.check()
    with _Agreement(group) as agreement:
        _load_model(model, shards)
        _load_optimizers(model, optimizers, shards)
        rest = shards.read_rest()
    agreement.check()
    return rest


def _load_model(model: Module, shards: Shards) -> None:
    state = model.state_dict()
    own = {f"{MODEL}.{name}": one for name, one in state.items() if isinstance(one, Tensor)}
    saved = {key for key, path in shards.paths.items() if path[0] == MODEL}
    if extra := sorted(saved - set(own)):
        raise CheckpointError(
            f"'{shards.directory}' is of another model: this one has no "
            f"'{extra[0].removeprefix(f'{MODEL}.')}'."
        )
    shards.read(own)
    # What a module keeps besides tensors, with get_extra_state().
    rest = shards.state.get(MODEL)
    if isinstance(rest, Mapping) and rest:
        model.load_state_dict({**state, **rest})


def _load_optimizers(model: Module, optimizers: Mapping[str, Optimizer], shards: Shards) -> None:
    states = shards.state.get(OPTIMIZERS)
    if not isinstance(states, Mapping):
        raise CheckpointError(f"'{shards.directory}' has no '{OPTIMIZERS}'.")
    for name, optimizer in optimizers.items():
        if not isinstance(states.get(name), dict):
            raise CheckpointError(
                f"'{shards.directory}' has no optimizer '{name}'.{nearest(name, states)}"
            )
        names = [one for group in parameter_names(model, optimizer) for one in group]
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        own = dict(zip(names, parameters, strict=True))
        targets = {
            key: shards.empty(key, like=own.get(str(path[3])))
            for key, path in shards.paths.items()
            if path[:3] == (OPTIMIZERS, name, "state") and len(path) > 3
        }
        shards.read(targets)
        for key, tensor in targets.items():
            shards.put_back(shards.state, key, tensor)
        load_optimizer_state(model, optimizer, states[name])


class _Agreement:
    """Lets an error on one rank be an error on all, so that none waits for the others."""

    def __init__(self, group: ProcessGroup | None) -> None:
        self._group = group
        self._error: CheckpointError | None = None

    def __enter__(self) -> _Agreement:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self._error = error if isinstance(error, CheckpointError) else None
        return self._error is not None

    def check(self) -> None:
        """Raise the error of the first rank that had one."""
        reasons = [str(self._error) if self._error is not None else None]
        if self._group is not None:
            from torch.distributed import all_gather_object

            own, reasons = reasons[0], [None] * self._group.size()
            all_gather_object(reasons, own, group=self._group)
        if self._error is not None:
            raise self._error
        if found := [reason for reason in reasons if reason is not None]:
            raise CheckpointError(found[0])


def _read_rest(path: Path) -> dict[str, object]:
    try:
        with open_plain(path) as file:
            size = os.fstat(file.fileno()).st_size
            check_archive(file, size)
            file.seek(0)
            content = torch.load(file, map_location="cpu", weights_only=True)
        check_contents(content, size)
        check_rest(content)
    except Exception as error:  # torch raises errors of nearly any type for a strange file.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CheckpointError(f"'{path}' cannot be loaded: {reason}") from error
    return cast("dict[str, object]", content)


class _FilePart(io.RawIOBase):
    """A part of an open file, as a file of its own."""

    # Not torch's own view: it cannot be read once its position is behind its end, as zipfile does.
    def __init__(self, file: BinaryIO, offset: int, length: int) -> None:
        self._file, self._offset, self._length, self._position = file, offset, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}[whence]
        if start + offset < 0:
            raise OSError("the position is before the beginning")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Buffer, /) -> int:
        target = memoryview(buffer)[: max(self._length - self._position, 0)]
        self._file.seek(self._offset + self._position)
        count = self._file.readinto(target)  # type: ignore[attr-defined]
        self._position += count
        return cast("int", count)


def _reader_class() -> type[FileSystemReader]:
    """Return torch's reader, with a look at each tensor before it is unpacked."""
    # In a function, because the base class takes long to import.
    from torch.distributed.checkpoint.filesystem import FileSystemReader

    class Reader(FileSystemReader):
        def _slice_file(self, file: object, sinfo: _StorageInfo) -> IO[bytes]:
            part = _FilePart(cast("BinaryIO", file), sinfo.offset, sinfo.length)
            check_archive(cast("BinaryIO", part), sinfo.length)
            part.seek(0)
            return cast("IO[bytes]", part)

        def read_metadata(self, *args: object, **kwargs: object) -> Metadata:
            raise NotImplementedError("the layout is read by read_layout")

    return Reader
