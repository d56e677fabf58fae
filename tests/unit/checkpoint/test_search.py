import logging

import pytest
import torch

from hookloop.checkpoint.search import (
    is_same_location,
    load_newest,
    search_locations,
    trusted_location,
)
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.errors import CheckpointError
from hookloop.runs.checkpoint_names import LAST
from hookloop.runs.layout import Pointer


def save(location, iteration, *, last=True):
    store, name = CheckpointStore(location), f"iter_{iteration}.pth"
    checkpoint = {"model": {"w": torch.ones(3)}, "progress": {"iter": iteration}}
    store.write(checkpoint, Saved(name, store.location, iteration, 0), 100)
    if last:
        store.mark_last(name)


@pytest.fixture
def run_dir(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def point_to(run_dir, text):
    (run_dir / LAST).write_text(f"{text}\n")


def test_a_run_without_a_checkpoint_has_none(run_dir, location):
    assert load_newest(str(run_dir), [location]) is None


def test_the_directory_of_the_run_is_enough(run_dir):
    save(run_dir, 3)
    save(run_dir, 5)
    label, checkpoint = load_newest(str(run_dir))
    assert (label, checkpoint["progress"]) == (f"{run_dir}/iter_5.pth", {"iter": 5})


def test_the_store_that_the_pointer_names_comes_first(run_dir, location):
    save(run_dir, 9)
    save(location, 4)
    point_to(run_dir, f"{location}/iter_4.pth")
    assert load_newest(str(run_dir), [location])[0] == f"{location}/iter_4.pth"


def test_a_store_without_a_good_checkpoint_is_skipped_for_the_next_one(run_dir, location, caplog):
    caplog.set_level(logging.WARNING)
    save(run_dir, 2)
    save(location, 4)
    store = CheckpointStore(location)
    store.storage.remove("iter_4.pth")
    point_to(run_dir, f"{location}/iter_4.pth")
    assert load_newest(str(run_dir), [location])[0] == f"{run_dir}/iter_2.pth"
    assert f"Looking in '{run_dir}' instead." in caplog.text


def test_if_no_store_has_a_good_one_all_reasons_are_given(run_dir, tmp_path):
    for directory in (run_dir, tmp_path / "store"):
        save(directory, 1)
        (directory / "iter_1.pth").write_bytes(b"")
    with pytest.raises(CheckpointError) as caught:
        load_newest(str(run_dir), [str(tmp_path / "store")])
    assert str(caught.value).count("No checkpoint in") == 2


def test_a_url_is_its_own_store():
    assert search_locations("memory://x", ["elsewhere"]) == [("memory://x", None)]


def test_without_a_pointer_every_store_tries_its_own_last(run_dir):
    assert search_locations(str(run_dir), ["a"]) == [(str(run_dir), None), ("a", None)]


def test_with_a_pointer_the_others_do_not_try_their_own_last(run_dir):
    point_to(run_dir, "iter_1.pth")
    assert search_locations(str(run_dir), ["a"]) == [(str(run_dir), None), ("a", "")]
    point_to(run_dir, "memory://x/iter_1.pth")
    found = search_locations(str(run_dir), ["a", "memory://x"])
    assert found == [("memory://x", "iter_1.pth"), (str(run_dir), ""), ("a", "")]


def test_a_pointer_to_a_foreign_store_is_rejected_and_not_opened(run_dir, monkeypatch):
    opened = []
    monkeypatch.setattr("fsspec.core.url_to_fs", opened.append)
    point_to(run_dir, "memory://stranger/iter_1.pth")
    with pytest.raises(CheckpointError, match="'memory://stranger/iter_1.pth'"):
        search_locations(str(run_dir))
    assert opened == []


def test_a_store_that_was_moved_is_known_by_its_own_pointer(run_dir, location):
    save(location, 4)
    pointer = Pointer("iter_4.pth", "/old/store")
    assert trusted_location(pointer, str(run_dir), [location]) == location
    with pytest.raises(CheckpointError, match="is not a store of this run"):
        trusted_location(Pointer("iter_3.pth", "/old/store"), str(run_dir), [location])


def test_locations_are_compared_as_the_user_would(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert is_same_location("real", str(tmp_path / "real"))
    assert is_same_location("link", str(tmp_path / "real"))
    assert not is_same_location("real", str(tmp_path / "link"))  # Not the user's own path.
    assert is_same_location("s3://user:pass@bucket/runs/", "s3://bucket/runs")
    assert not is_same_location("s3://bucket/runs", "s3://bucket/other")
    assert not is_same_location("real", "memory://real")
