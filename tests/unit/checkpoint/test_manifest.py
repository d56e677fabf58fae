import os
import random
from pathlib import Path

import pytest

from hookloop.checkpoint.shards.manifest import open_plain, read_manifest, verify
from hookloop.errors import CheckpointError

FILES = ("manifest.json", ".metadata", "state.pt", "__0_0.distcp")


def test_a_directory_as_it_was_written_is_accepted(shards) -> None:
    directory, _ = shards
    manifest = verify(directory)
    assert {*manifest.files, "manifest.json"} == set(FILES) == set(os.listdir(directory))
    assert manifest.size == sum((directory / name).stat().st_size for name in manifest.files)
    assert manifest.facts == {"ranks": 1}


@pytest.mark.parametrize("name", FILES)
def test_one_flipped_bit_in_any_file_is_found(shards, name: str) -> None:
    path = shards[0] / name
    data, draw = path.read_bytes(), random.Random(0)
    for place in [0, len(data) - 1, *(draw.randrange(len(data)) for _ in range(30))]:
        damaged = bytearray(data)
        damaged[place] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f"{name}' is damaged"):
            verify(shards[0])
    path.write_bytes(data)
    verify(shards[0])


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_off_or_missing_is_found(shards, name: str) -> None:
    path = shards[0] / name
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(CheckpointError, match=f"{name}' is damaged"):
        verify(shards[0])
    path.unlink()
    with pytest.raises(CheckpointError, match=f"{name}' is (missing|damaged)"):
        verify(shards[0])


def test_what_does_not_belong_there_is_found(shards) -> None:
    directory, _ = shards
    (directory / "more.distcp").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="more.distcp'"):
        verify(directory)
    (directory / "more.distcp").unlink()
    (directory / "folder").mkdir()
    with pytest.raises(CheckpointError, match="folder' does not belong"):
        verify(directory)


@pytest.mark.parametrize("name", FILES)
def test_links_are_not_followed(shards, tmp_path: Path, name: str) -> None:
    path = shards[0] / name
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match=f"{name}' is (not a plain file|damaged)"):
        verify(shards[0])


def test_a_name_that_leads_elsewhere_is_rejected(shards, tmp_path: Path) -> None:
    from hookloop.checkpoint.shards.manifest import encode_manifest

    manifest = read_manifest(shards[0])
    for name in ("../secret", "/etc/passwd", "a/b", ".."):
        files = {**manifest.files, name: manifest.files["state.pt"]}
        (shards[0] / "manifest.json").write_bytes(encode_manifest(files, {}))
        with pytest.raises(CheckpointError, match="is not the name of a file in it"):
            verify(shards[0])


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a plain file"):
        open_plain(tmp_path / "pipe")


def test_ranks_share_the_work(shards) -> None:
    path = shards[0] / ".metadata"
    path.write_bytes(bytes(path.stat().st_size))
    found = []
    for rank in range(3):
        try:
            verify(shards[0], rank, 3)
        except CheckpointError:
            found.append(rank)
    assert len(found) == 1


def test_no_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="There is no checkpoint"):
        verify(tmp_path / "iter_1")
    (tmp_path / "iter_1").mkdir()
    with pytest.raises(CheckpointError, match="manifest.json' is damaged"):
        verify(tmp_path / "iter_1")
