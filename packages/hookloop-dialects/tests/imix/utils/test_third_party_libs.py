"""`PathManager` for local files."""

import pytest

from hookloop.errors import HookError
from hookloop_dialects.imix.utils.file_io import PathManager as Older
from hookloop_dialects.imix.utils.third_party_libs import PathManager


def test_files_are_written_read_copied_and_removed(tmp_path):
    path, copy = str(tmp_path / "new" / "a.txt"), str(tmp_path / "b.txt")
    with PathManager.open(path, "w") as file:
        file.write("text")
    with PathManager.open(path) as file:
        assert file.read() == "text"
    assert PathManager.exists(path) and PathManager.isfile(path)
    assert PathManager.isdir(str(tmp_path / "new")) and PathManager.ls(str(tmp_path)) == ["new"]
    assert PathManager.copy(path, copy) and not PathManager.copy(path, copy)
    assert PathManager.copy(path, copy, overwrite=True)
    PathManager.rm(path)
    assert not PathManager.exists(path)
    PathManager.mkdirs(str(tmp_path / "x" / "y"))
    assert PathManager.isdir(str(tmp_path / "x" / "y"))
    assert Older is PathManager


def test_a_path_of_another_machine_is_rejected():
    with pytest.raises(HookError, match="'s3://bucket/a' is not a local path"):
        PathManager.open("s3://bucket/a")
