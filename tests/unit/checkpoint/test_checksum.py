import io
import struct
import zipfile

import pytest
import torch

from hookloop.checkpoint.store.writing import file_checksum, torch_writes_checksums
from hookloop.runs.checksum import find_damage, open_archive


@pytest.fixture(params=[True, False], ids=["with CRC-32", "without CRC-32"])
def with_crc32(request):
    torch.serialization.set_crc32_options(request.param)
    yield request.param
    torch.serialization.set_crc32_options(True)


def saved(value=1.0):
    file = io.BytesIO()
    torch.save({"model": {"w": torch.full((1000,), value)}, "progress": {"iter": 3}}, file)
    return file.getvalue()


def flipped(data, at):
    data = bytearray(data)
    data[at] ^= 4
    return io.BytesIO(data)


def test_the_option_of_torch_is_seen(with_crc32):
    assert torch_writes_checksums() is with_crc32


def test_a_whole_file_has_no_damage(with_crc32):
    data = saved()
    expected = file_checksum(io.BytesIO(data))
    assert find_damage(io.BytesIO(data), expected) is None
    assert file_checksum(io.BytesIO(saved())) == expected
    assert file_checksum(io.BytesIO(saved(2.0))) != expected


def test_a_flipped_bit_in_the_numbers_is_found(with_crc32):
    data = saved()
    expected = file_checksum(io.BytesIO(data))
    assert find_damage(flipped(data, len(data) // 2), expected) is not None


def test_another_whole_file_is_not_the_expected_one(with_crc32):
    expected = file_checksum(io.BytesIO(saved(1.0)))
    assert find_damage(io.BytesIO(saved(2.0)), expected) == "its checksum is wrong"


def test_a_change_of_any_record_is_found_without_an_expected_checksum():
    data = saved()
    records = zipfile.ZipFile(io.BytesIO(data)).infolist()
    assert len(records) > 3
    for record in records:
        header = data[record.header_offset : record.header_offset + 30]
        begin = record.header_offset + 30 + sum(struct.unpack("<HH", header[26:30]))
        damaged = flipped(data, begin + record.file_size // 2)
        assert find_damage(damaged, None) == f"its part '{record.filename}' has changed"


def test_a_file_that_is_not_an_archive_is_compared_by_its_bytes():
    assert open_archive(io.BytesIO(b"not an archive")) is None
    assert find_damage(io.BytesIO(b"not an archive"), None) is None
    # CRC-32 of the standard test vector.
    assert find_damage(io.BytesIO(b"123456789"), 0xCBF43926) is None
    assert find_damage(io.BytesIO(b"123456780"), 0xCBF43926) == "its checksum is wrong"
