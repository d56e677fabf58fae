"""Copies of files with the results."""

import pytest

from hookloop_dialects.emloop.hooks import SaveFile


def test_files_are_copied_before_the_training(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in ("notes.txt", "more.bin"):
        (tmp_path / name).write_bytes(name.encode() * 1000)
    hook = SaveFile([str(tmp_path / "notes.txt"), str(tmp_path / "more.bin")], str(kept))
    assert not list(kept.iterdir())
    hook.before_training()
    assert sorted(path.name for path in kept.iterdir()) == ["more.bin", "notes.txt"]
    assert (kept / "notes.txt").read_bytes() == b"notes.txt" * 1000


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="there is no file 'nowhere' to save"):
        SaveFile(["nowhere"], str(tmp_path)).before_training()
