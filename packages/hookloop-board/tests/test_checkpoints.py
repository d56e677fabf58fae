"""The checkpoints of a run: whether they are whole, and commands for them."""

import json
import shlex
import zipfile
import zlib

import pytest

from board_runs import entry_of, locked, write_run
from hookloop_board.checkpoints import checkpoints_view, verify
from hookloop_board.collection import NotFound

CONFIG = "optimizer:\n  lr: 0.1\ntest_data:\n  type: x\n"


@pytest.fixture
def run(tmp_path):
    path = write_run(tmp_path / "a b", config=CONFIG)
    (path / "epoch_4.pth").write_bytes(b"weights")
    index(
        path,
        {"name": "epoch_4.pth", "iter": 80, "epoch": 4, "size": 7, "crc32": zlib.crc32(b"weights")},
    )
    (path / "last_checkpoint").write_text("epoch_4.pth")
    return path


def index(path, *entries):
    (path / "checkpoints.json").write_text(json.dumps({"checkpoints": list(entries)}))


def look(run):
    return checkpoints_view(entry_of(run.parent)[1])["checkpoints"]


def test_a_checkpoint_is_listed_with_commands_for_a_shell(run):
    (one,) = look(run)
    assert one["is_last"] and one["best_of"] == ["val/accuracy"] and one["state"] == "unchecked"
    assert shlex.split(one["commands"]["resume"]) == [
        "hookloop", "resume", str(run), "--checkpoint", str(run / "epoch_4.pth"),
    ]  # fmt: skip
    assert list(one["commands"]) == ["resume", "test", "predict", "export", "publish"]


def test_a_checkpoint_of_a_failure_is_not_offered_to_resume(run):
    index(run, {"name": "epoch_4.pth", "iter": 80, "epoch": 4, "size": 7, "kind": "exception"})
    assert "resume" not in look(run)[0]["commands"]


def test_a_checkpoint_of_a_run_that_lives_is_not_offered_to_resume(run):
    (run / "summary.json").write_text('{"status": "running"}')
    with locked(run):
        commands = look(run)[0]["commands"]
    assert list(commands) == ["test", "predict", "export", "publish"]


def test_without_a_config_no_command_would_work(tmp_path):
    path = write_run(tmp_path / "a", config="")
    index(path, {"name": "x.pth", "iter": 1, "epoch": 0})
    assert look(path)[0]["commands"] == {}


def test_a_file_is_verified_and_the_result_stays_until_it_changes(run):
    _, entry = entry_of(run.parent)
    assert verify(entry, "epoch_4.pth")["state"] == "ok"
    assert checkpoints_view(entry)["checkpoints"][0]["state"] == "ok"
    (run / "epoch_4.pth").write_bytes(b"weighty")
    assert checkpoints_view(entry)["checkpoints"][0]["state"] == "unchecked"
    assert verify(entry, "epoch_4.pth") == {"state": "damaged", "detail": "its checksum is wrong"}


def test_a_missing_or_shortened_file_shows_at_once(run):
    (run / "epoch_4.pth").write_bytes(b"weigh")
    assert look(run)[0]["state"] == "damaged"
    (run / "epoch_4.pth").unlink()
    assert look(run)[0]["state"] == "missing"
    (run / "epoch_4.pth").symlink_to("/etc/passwd")
    _, entry = entry_of(run.parent)
    assert "link" in verify(entry, "epoch_4.pth")["detail"]


@pytest.mark.parametrize("name", ["../secret.pth", "/etc/passwd", "a/b", "", 3, None, "x\0"])
def test_names_that_lead_elsewhere_are_left_out(run, name):
    index(run, {"name": name, "iter": 1, "epoch": 0}, "odd")
    assert look(run) == []
    with pytest.raises(NotFound):
        verify(entry_of(run.parent)[1], name)


def test_an_archive_that_unpacks_to_more_than_it_is_is_not_unpacked(run):
    with zipfile.ZipFile(run / "bomb.pth", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"\0" * 10_000_000)
    size = (run / "bomb.pth").stat().st_size
    index(run, {"name": "bomb.pth", "iter": 1, "epoch": 0, "size": size, "crc32": 5})
    assert "not an archive as" in verify(entry_of(run.parent)[1], "bomb.pth")["detail"]


def test_a_directory_is_compared_with_its_manifest(run):
    (run / "iter_9").mkdir()
    (run / "iter_9" / "part").write_bytes(b"abc")
    files = {"part": {"size": 3, "crc32": zlib.crc32(b"abc")}}
    (run / "iter_9" / "manifest.json").write_text(json.dumps({"body": {"files": files}}))
    index(run, {"name": "iter_9", "iter": 9, "epoch": 0})
    _, entry = entry_of(run.parent)
    assert verify(entry, "iter_9")["state"] == "ok"
    (run / "iter_9" / "part").write_bytes(b"abd")
    _, entry = entry_of(run.parent)
    assert verify(entry, "iter_9")["state"] == "damaged"


def test_an_index_that_is_none_lists_nothing(run):
    for text in ("{", "[]", '{"checkpoints": 3}'):
        (run / "checkpoints.json").write_text(text)
        assert look(run) == []
