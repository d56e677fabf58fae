"""Files by their paths."""

import pytest

from hookloop.errors import DataError
from hookloop_dialects.vissl.fvcore.common.file_io import PathManager
from hookloop_dialects.vissl.iopath.common.file_io import PathManagerFactory, g_pathmgr


def test_files_are_opened_copied_moved_and_deleted(tmp_path):
    folder = f"{tmp_path}/new/folder"
    g_pathmgr.mkdirs(folder)
    with g_pathmgr.open(f"{folder}/a.txt", "w") as file:
        file.write("ä")
    with PathManager.open(f"{folder}/a.txt", "rb") as file:
        assert file.read() == "ä".encode()
    assert g_pathmgr.copy(f"{folder}/a.txt", f"{folder}/b.txt")
    assert not g_pathmgr.copy(f"{folder}/a.txt", f"{folder}/b.txt")
    assert g_pathmgr.mv(f"{folder}/b.txt", f"{folder}/c.txt")
    assert g_pathmgr.symlink(f"{folder}/a.txt", f"{folder}/d.txt")
    assert g_pathmgr.ls(folder) == ["a.txt", "c.txt", "d.txt"]
    g_pathmgr.rm(f"{folder}/c.txt")
    assert not g_pathmgr.exists(f"{folder}/c.txt") and g_pathmgr.isfile(f"{folder}/a.txt")
    assert g_pathmgr.isdir(folder) and g_pathmgr.get_local_path(folder) == folder
    assert PathManagerFactory.get("x") is PathManagerFactory.get("x")


def test_an_address_is_rejected():
    with pytest.raises(DataError, match="is not a local path"):
        g_pathmgr.open("s3://bucket/file")
