"""Damage in a file is found without torch."""

import io
import zipfile
import zlib

import pytest

from hookloop.runs.checksum import checksum_of_records, find_damage, open_archive


def archive(content=b"weights"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("data", content)
    return file


def test_an_archive_is_known_by_its_records():
    file = archive()
    expected = checksum_of_records(open_archive(file))
    assert find_damage(file, expected) is None and find_damage(file, None) is None
    assert find_damage(file, expected + 1) == "its checksum is wrong"


def test_a_changed_byte_is_found():
    file = archive()
    expected = checksum_of_records(open_archive(file))
    data = bytearray(file.getvalue())
    data[data.index(b"weights")] ^= 1
    assert find_damage(io.BytesIO(bytes(data)), expected) == "its part 'data' has changed"


@pytest.mark.parametrize("content", [b"", b"plain bytes"])
def test_what_is_no_archive_is_known_by_its_bytes(content):
    assert find_damage(io.BytesIO(content), zlib.crc32(content)) is None
    assert find_damage(io.BytesIO(content + b"x"), zlib.crc32(content)) == "its checksum is wrong"
