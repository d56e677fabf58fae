"""Files that anybody may have made are read without waiting, and up to a limit."""

import os
from pathlib import Path

import pytest

from hookloop.runs.reading import (
    opened_to_read,
    parse_json,
    read_bytes,
    read_json,
)


def test_a_file_is_opened_as_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x00\r\n")
    with opened_to_read(tmp_path / "a") as file:
        assert file.read() == b"\x00\r\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_is_rejected_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="'pipe'"), opened_to_read(tmp_path / "pipe"):
        pass


def test_a_directory_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not a file"):
        read_json(tmp_path)


def test_json_is_read_up_to_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"a": 1}')
    assert read_json(file) == {"a": 1}
    assert read_json(file, most=8) == {"a": 1}
    with pytest.raises(ValueError, match="'a.json' is larger than 7 bytes"):
        read_json(file, most=7)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
def test_whatever_is_wrong_with_json_is_a_value_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ValueError, match="."):
        parse_json(data)
    (tmp_path / "a.json").write_bytes(data)
    with pytest.raises(ValueError, match="'a.json'.*JSON"):
        read_json(tmp_path / "a.json")


def test_bytes_are_read_up_to_a_limit_and_of_plain_files_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert read_bytes(tmp_path / "file", 100) == b"0123456789"
    assert read_bytes(tmp_path / "file", 10) == b"0123456789"
    assert read_bytes(str(tmp_path / "file"), 4) == b"0123"
    (tmp_path / "empty").touch()
    assert read_bytes(tmp_path / "empty", 100) == b""
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(OSError, match="'link' is a symbolic link"):
        read_bytes(tmp_path / "link", 100)
    with pytest.raises(OSError, match="is not a file"):
        read_bytes(tmp_path, 100)
