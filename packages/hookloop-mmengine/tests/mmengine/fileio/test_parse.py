"""Lists and dicts in text files."""

import pytest

from hookloop_mmengine.fileio import dict_from_file, list_from_file


def test_keys_and_values(tmp_path):
    path = tmp_path / "map.txt"
    path.write_text("1 cat\n2 brown dog\n")
    assert dict_from_file(path) == {"1": "cat", "2": ["brown", "dog"]}
    assert dict_from_file(path, key_type=int, backend_args={"backend": "local"})[1] == "cat"
    path.write_text("1 cat\n2\n")
    with pytest.raises(AssertionError, match="Line 2 of .*map.txt needs a key and a value"):
        dict_from_file(path)


def test_the_older_arguments(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("a\nb")
    assert list_from_file(path, "x/", file_client_args={"backend": "disk"}) == ["x/a", "x/b"]
    with pytest.raises(ValueError, match="cannot be set at the same time"):
        list_from_file(path, file_client_args={"backend": "disk"}, backend_args={})
