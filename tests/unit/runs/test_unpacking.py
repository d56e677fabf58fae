"""Archives of strangers: nothing leads out of the directory, and nothing is left of a bad one."""

import stat
import zipfile

import pytest

from hookloop.errors import HookloopError
from hookloop.runs import unpacking
from hookloop.runs.unpacking import unpack


def archive(tmp_path, entries):
    path = tmp_path / "source.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in entries:
            opened.writestr(name, data)
    return path


def link(name):
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


def test_files_are_unpacked(tmp_path):
    path = archive(tmp_path, [("train.py", "x = 1"), ("package/model.py", "y = 2"), ("empty/", "")])
    assert unpack(path, tmp_path / "new" / "source") == 2
    assert (tmp_path / "new/source/package/model.py").read_text() == "y = 2"


@pytest.mark.parametrize(
    "name",
    ["../out.py", "a/../../out.py", "/out.py", "C:\\out.py", "a\\..\\out.py", link("a.py")],
)
def test_an_entry_that_leads_elsewhere_is_rejected(tmp_path, name):
    path = archive(tmp_path, [("fine.py", ""), (name, "/etc/passwd")])
    with pytest.raises(HookloopError, match="leads out of its directory"):
        unpack(path, tmp_path / "source")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["source.zip"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_rejected(tmp_path):
    path = archive(tmp_path, [("a.py", "x = 1"), ("a.py", "x = 2")])
    with pytest.raises(HookloopError):
        unpack(path, tmp_path / "source")
    assert not (tmp_path / "source").exists()


def test_an_archive_that_is_too_large_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "MOST_BYTES", 1000)
    path = archive(tmp_path, [("a.py", " " * 2000)])
    with pytest.raises(HookloopError, match="holds more than"):
        unpack(path, tmp_path / "source")
    monkeypatch.setattr(unpacking, "MOST_FILES", 1)
    path = archive(tmp_path, [("a.py", ""), ("b.py", "")])
    with pytest.raises(HookloopError, match="holds more than"):
        unpack(path, tmp_path / "source")


def test_what_is_no_archive_is_rejected(tmp_path):
    path = tmp_path / "source.zip"
    path.write_bytes(b"PK\x03\x04 not an archive")
    with pytest.raises(HookloopError, match="cannot be unpacked"):
        unpack(path, tmp_path / "source")
    real = tmp_path / "real"
    real.mkdir()
    path.rename(real / "source.zip")
    path.symlink_to(real / "source.zip")
    with pytest.raises(HookloopError, match="symbolic link"):
        unpack(path, tmp_path / "source")


def test_nothing_is_unpacked_over_a_directory(tmp_path):
    path = archive(tmp_path, [("a.py", "")])
    (tmp_path / "source").mkdir()
    with pytest.raises(HookloopError, match="there already"):
        unpack(path, tmp_path / "source")
