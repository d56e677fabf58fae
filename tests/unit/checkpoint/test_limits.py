"""Files that are small on disk and large in memory, or that no walk could finish."""

import io
import pickle
import resource
import subprocess
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.names import epoch_file

from hookloop.checkpoint.state.pretrained import Pretrained
from hookloop.checkpoint.store.limits import check_contents
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.errors import CheckpointError


class Storage:
    """Stands for the one storage of a crafted file."""


class View:
    """A tensor over that storage, with any size."""

    def __init__(self, size: tuple[int, ...], stride: tuple[int, ...]) -> None:
        self.arguments = (Storage(), 0, size, stride, False, OrderedDict())

    def __reduce__(self) -> Any:
        return torch._utils._rebuild_tensor_v2, self.arguments


class Bytes:
    """A bytearray of which the file holds nothing but the size."""

    def __reduce__(self) -> Any:
        return bytearray, (2_000_000_000,)


class Pickler(pickle._Pickler):  # type: ignore[misc]
    def persistent_id(self, value: object) -> object:
        if isinstance(value, Storage):
            return ("storage", torch.FloatStorage, "0", "cpu", 4)
        return None


def craft(path: Path, value: object, method: int = zipfile.ZIP_STORED, size: int = 16) -> None:
    stream = io.BytesIO()
    Pickler(stream, 2).dump(value)
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("archive/data.pkl", stream.getvalue())
        archive.writestr("archive/data/0", bytes(size))
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/byteorder", "little")


def wrapped(value: object) -> dict[str, object]:
    return {"model": {"w": value}, "progress": {"iter": 1}}


def laughs() -> list[object]:
    value: list[object] = [1] * 10
    for _ in range(12):
        value = [value] * 10
    return value


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


def circle() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


CRAFTED = {
    "repeated number": (wrapped(View((10**9,), (0,))), "its tensors claim to hold 4,000 MB"),
    "a bytearray": (wrapped(Bytes()), "it holds a bytearray"),
    "a billion lists": (wrapped(laughs()), "hold more than 20,000,000 values"),
    "a list in itself": (wrapped(circle()), "contains itself"),
}


@pytest.mark.parametrize("kind", CRAFTED)
def test_contents_that_would_grow_are_rejected(kind: str, tmp_path: Path) -> None:
    value, words = CRAFTED[kind]
    craft(tmp_path / epoch_file(1), value)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for load in (
        lambda: CheckpointStore(tmp_path).newest(),
        lambda: Pretrained(tmp_path / epoch_file(1)).load_into(torch.nn.Linear(1, 1)),
    ):
        with pytest.raises(CheckpointError, match=f"epoch_1.pth' cannot be loaded: .*{words}"):
            load()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000  # KB


def test_deep_nesting_is_rejected_without_recursing_into_it() -> None:
    with pytest.raises(ValueError, match="more than 100 deep"):
        check_contents(nested(100_000), 1)
    check_contents(nested(50), 1)


@pytest.mark.slow
def test_deep_nesting_in_a_file_is_rejected(tmp_path: Path) -> None:
    depth = 100_000
    body = b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b"."
    with zipfile.ZipFile(tmp_path / epoch_file(1), "w") as archive:
        archive.writestr("archive/data.pkl", body)
        archive.writestr("archive/version", "3\n")
    with pytest.raises(CheckpointError, match="more than 100 deep"):
        CheckpointStore(tmp_path).newest()


@pytest.mark.slow
def test_a_compressed_file_does_not_fill_the_memory(tmp_path: Path) -> None:
    craft(tmp_path / epoch_file(1), wrapped(1), zipfile.ZIP_DEFLATED, size=1 << 30)
    assert (tmp_path / epoch_file(1)).stat().st_size < 3_000_000
    code = (
        "import resource, sys\n"
        "from hookloop.checkpoint.store.store import CheckpointStore\n"
        "from hookloop.errors import CheckpointError\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    CheckpointStore(sys.argv[1]).newest()\n"
        "except CheckpointError as error:\n    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    reason, grown = done.stdout.splitlines()
    assert "its parts are compressed" in reason
    assert int(grown) < 100_000


def test_parts_that_overlap_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / epoch_file(1)
    craft(path, wrapped(1), size=100_000)
    archive = zipfile.ZipFile(path, "a")
    info = archive.getinfo("archive/data/0")
    for number in range(1, 40):  # Forty names for the same bytes.
        other = zipfile.ZipInfo(f"archive/data/{number}")
        other.header_offset, other.CRC = info.header_offset, info.CRC
        other.file_size = other.compress_size = info.file_size
        archive.filelist.append(other)
        archive.NameToInfo[other.filename] = other
    archive._didModify = True  # type: ignore[attr-defined]
    archive.close()
    with pytest.raises(CheckpointError, match="larger than the file, so they overlap"):
        CheckpointStore(tmp_path).newest()


def test_an_honest_file_passes(tmp_path: Path) -> None:
    tied = torch.ones(1000, 1000)
    value = {
        "model": {"a": tied, "b": tied, "half": tied[:500], "few": torch.ones(1).expand(1000)},
        "progress": {"iter": 1},
        "set": {1, 2},
    }
    torch.save(value, tmp_path / epoch_file(1))
    found = CheckpointStore(tmp_path).newest()
    assert found is not None
    assert found[0] == epoch_file(1)


@pytest.mark.parametrize(
    "weights", [{"model": {1: torch.ones(1)}}, {"model": {"weight": "text"}}, {"model": {}}]
)
def test_weights_of_the_wrong_kind_are_rejected(weights: object, tmp_path: Path) -> None:
    torch.save(weights, tmp_path / "w.pth")
    with pytest.raises(CheckpointError):
        Pretrained(tmp_path / "w.pth").load_into(torch.nn.Linear(1, 1))


def test_a_damaged_safetensors_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(CheckpointError, match="w.safetensors'"):
        Pretrained(tmp_path / "w.safetensors").load_into(torch.nn.Linear(1, 1))
