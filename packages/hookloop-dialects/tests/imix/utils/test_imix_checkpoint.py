"""The checkpointer that only the first process writes with."""

from tests.tiny import make_model

from hookloop_dialects.imix.utils.imix_checkpoint import imixCheckpointer


def test_only_the_first_process_writes(tmp_path, monkeypatch):
    assert imixCheckpointer(make_model(), str(tmp_path)).is_save_disk
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert not imixCheckpointer(make_model(), str(tmp_path)).is_save_disk
    assert imixCheckpointer(make_model(), str(tmp_path), is_save_disk=True).is_save_disk
