import json
import logging
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.names import iter_file

from hookloop.checkpoint.saving.retention import Keep
from hookloop.checkpoint.shards.writing import stage
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.store import CheckpointStore, load
from hookloop.errors import CheckpointError
from hookloop.runs.checkpoint_names import INDEX, LAST


def checkpoint(iteration):
    return {
        "progress": {"iter": iteration},
        "model": {"w": torch.full((10_000,), float(iteration))},
    }


def save(store, iteration, *, name=None, owner="a", kind="periodic", last=True, **options):
    name = name or iter_file(iteration)
    saved = Saved(name, store.location, iteration, 0, kind=kind, owners=(owner,), **options)
    done = store.write(checkpoint(iteration), saved, 40_000)
    if last:
        store.mark_last(name)
    return done


def iteration_of(found):
    return found[1]["progress"]["iter"]


def spoil(store, name, change):
    with store.storage.open(name) as file:
        data = bytearray(file.read())
    store.storage.write(name, lambda file: file.write(bytes(change(data))))


def flip(data):
    data[len(data) // 2] ^= 1
    return data


DAMAGES = {
    "truncated": (lambda data: data[: len(data) // 2], "bytes instead of"),
    "bit-flipped": (flip, "is damaged: its "),
    "empty": (lambda data: b"", "is empty"),
    "foreign": (lambda data: b"not a checkpoint", "bytes instead of"),
}


def test_an_empty_store_has_no_newest(location):
    assert CheckpointStore(location).newest() is None


def test_what_is_written_is_listed_and_loaded_again(location):
    store = CheckpointStore(location)
    saved = save(store, 3, metrics={"val/loss": float("nan")})
    assert saved.size == store.storage.size(iter_file(3))
    again = CheckpointStore(location)
    assert list(again.index.entries) == [iter_file(3)]
    listed = again.index.entries[iter_file(3)]
    assert (listed.iter, listed.owners, listed.crc32) == (3, ("a",), saved.crc32)
    assert listed.metrics["val/loss"] != listed.metrics["val/loss"]
    assert iteration_of(again.newest()) == 3


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_skipped_for_the_newest_good_one(location, damage, caplog):
    store = CheckpointStore(location)
    for iteration in (1, 2, 3):
        save(store, iteration)
    change, reason = DAMAGES[damage]
    spoil(store, iter_file(3), change)
    assert iteration_of(CheckpointStore(location).newest()) == 2
    assert f"'{store.location}/{iter_file(3)}'" in caplog.text
    assert reason in caplog.text
    assert f"Resuming from '{iter_file(2)}' instead." in caplog.text


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_without_an_index_is_found_out_too(location, damage):
    store = CheckpointStore(location)
    for iteration in (9, 10):  # Not in the order of the alphabet.
        save(store, iteration)
    spoil(store, iter_file(10), DAMAGES[damage][0])
    store.storage.remove(INDEX)
    assert iteration_of(CheckpointStore(location).newest()) == 9


def test_without_index_and_mark_the_furthest_wins_and_exceptions_are_skipped(location):
    store = CheckpointStore(location)
    for iteration in (9, 10, 2):
        save(store, iteration)
    save(store, 99, name="exception_iter_99.pth", kind="exception", last=False)
    store.storage.remove(INDEX)
    store.storage.remove(LAST)
    assert iteration_of(CheckpointStore(location).newest()) == 10


def test_if_all_are_damaged_it_is_an_error_and_not_a_new_start(location):
    store = CheckpointStore(location)
    for iteration in (1, 2):
        save(store, iteration)
        spoil(store, iter_file(iteration), flip)
    with pytest.raises(CheckpointError, match="No checkpoint in .* can be used") as caught:
        CheckpointStore(location).newest()
    assert iter_file(1) in str(caught.value)
    assert iter_file(2) in str(caught.value)


def test_if_all_files_are_gone_it_is_an_error_too(location):
    store = CheckpointStore(location)
    save(store, 1)
    store.storage.remove(iter_file(1))
    store.storage.remove(LAST)
    with pytest.raises(CheckpointError, match="iter_1.pth' is missing"):
        CheckpointStore(location).newest()


def test_a_file_of_something_else_is_not_a_checkpoint_of_a_run(tmp_path):
    torch.save({"state_dict": {}}, tmp_path / "model.pth")
    with pytest.raises(CheckpointError, match="model.pth'"):
        CheckpointStore(tmp_path).newest()
    torch.save([1], tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="holds a list, not a checkpoint"):
        load(tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="There is no checkpoint"):
        load(tmp_path / "nothing.pth")


def test_the_last_one_marked_is_tried_first(location):
    store = CheckpointStore(location)
    for iteration in (8, 9):
        save(store, iteration)
    save(store, 4)  # The run went back and continues from there.
    assert iteration_of(CheckpointStore(location).newest()) == 4
    spoil(store, iter_file(4), flip)
    assert iteration_of(CheckpointStore(location).newest()) == 9


def test_a_crash_before_the_mark_leaves_the_one_before(location):
    store = CheckpointStore(location)
    save(store, 1)
    save(store, 2, last=False)
    assert iteration_of(CheckpointStore(location).newest()) == 1


def test_exceptions_and_partial_ones_are_not_resumed_from(location):
    store = CheckpointStore(location)
    save(store, 1)
    save(store, 2, kind="exception", last=False)
    save(store, 3, left_out=("optimizers",), last=False)
    store.storage.remove(LAST)
    assert iteration_of(CheckpointStore(location).newest()) == 1


def test_promotion_writes_nothing_twice(tmp_path):
    store = CheckpointStore(tmp_path)
    save(store, 1)
    best = Saved("best_iter_1.pth", store.location, 1, 0, kind="best", owners=("a/acc",))
    store.promote(iter_file(1), best)
    assert os.path.samefile(tmp_path / iter_file(1), tmp_path / "best_iter_1.pth")
    assert store.load("best_iter_1.pth")["progress"] == {"iter": 1}
    with pytest.raises(CheckpointError, match="'iter_7.pth'"):
        store.promote(iter_file(7), best)


def test_retention_is_by_owner_and_kind(location):
    store = CheckpointStore(location)
    for iteration in (1, 2, 3):
        save(store, iteration, owner="a")
        save(store, iteration, name=f"other_{iteration}.pth", owner="b")
        save(store, iteration, name=f"best_{iteration}.pth", owner="a", kind="best")
    assert store.prune(Keep("a", "periodic", 1)) == [iter_file(1), iter_file(2)]
    assert store.prune(Keep("b", "periodic", None)) == []
    left = {iter_file(3), "other_1.pth", "other_2.pth", "other_3.pth"}
    left |= {"best_1.pth", "best_2.pth", "best_3.pth"}
    assert set(store.storage.names()) - {INDEX, LAST} == left
    assert set(CheckpointStore(location).index.entries) == left


def test_those_kept_forever_are_never_deleted(location):
    store = CheckpointStore(location)
    for iteration in range(1, 8):
        save(store, iteration, forever=iteration % 3 == 0)
        store.prune(Keep("a", "periodic", 2))
    assert list(store.index.entries) == [iter_file(n) for n in (3, 6, 7)]


def test_a_file_of_two_owners_goes_when_neither_wants_it(location):
    store = CheckpointStore(location)
    for iteration in (1, 2):
        for owner in ("a", "b"):
            save(store, iteration, owner=owner)
    assert store.prune(Keep("a", "periodic", 1)) == []
    assert iter_file(1) in store.storage.names()
    assert store.prune(Keep("b", "periodic", 1)) == [iter_file(1)]


def test_a_crash_between_deletion_and_index_does_no_harm(location):
    store = CheckpointStore(location)
    for iteration in (1, 2):
        save(store, iteration)
    store.storage.remove(iter_file(1))
    again = CheckpointStore(location)
    save(again, 3)
    assert list(again.index.entries) == [iter_file(2), iter_file(3)]


def test_an_index_that_cannot_be_read_is_rebuilt(location, caplog):
    store = CheckpointStore(location)
    save(store, 1)
    spoil(store, INDEX, lambda data: b"{")
    again = CheckpointStore(location)
    assert iteration_of(again.newest()) == 1
    assert f"{INDEX}' cannot be read and is rebuilt" in caplog.text
    save(again, 2)
    assert list(CheckpointStore(location).index.entries) == [iter_file(2)]


def test_an_index_of_a_later_version_is_read(location):
    store = CheckpointStore(location)
    save(store, 1)
    with store.storage.open(INDEX) as file:
        entries = json.load(file)
    entries["checkpoints"][0]["colour"] = "red"
    store.storage.write(INDEX, lambda file: file.write(json.dumps(entries).encode()))
    assert iteration_of(CheckpointStore(location).newest()) == 1


def test_a_store_can_be_moved(tmp_path):
    save(CheckpointStore(tmp_path / "one"), 1)
    shutil.move(tmp_path / "one", tmp_path / "two")
    name, found = CheckpointStore(tmp_path / "two").newest()
    assert (name, found["progress"]) == (iter_file(1), {"iter": 1})


def test_what_was_left_half_written_is_cleaned(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    (tmp_path / f".{iter_file(1)}.staged").write_bytes(b"half")
    CheckpointStore(tmp_path).clean()
    assert not list(tmp_path.iterdir())
    assert f".{iter_file(1)}.staged" in caplog.text


def test_space_is_looked_for_before_writing(tmp_path, monkeypatch):
    store = CheckpointStore(tmp_path)
    monkeypatch.setattr(store.storage, "free_bytes", lambda: 100)
    with pytest.raises(OSError, match="No space left on device: it takes 0.0 MB, 0.0 MB are free"):
        save(store, 1)
    assert os.listdir(tmp_path) == []


def test_an_error_of_the_disk_is_raised_as_it_is(tmp_path, monkeypatch):
    store = CheckpointStore(tmp_path)

    def write(name, write):
        class Full:
            def write(self, data):
                raise OSError(28, "No space left on device")

            def flush(self): ...

        write(Full())

    monkeypatch.setattr(store.storage, "write", write)
    with pytest.raises(OSError, match="No space left on device"):
        save(store, 1)


@pytest.mark.parametrize("name", ["../precious.txt", "/precious.txt", ".lock", "", "a\\b", "a/b"])
def test_an_index_that_names_files_outside_of_the_store_deletes_none_of_them(tmp_path, name):
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    store = CheckpointStore(tmp_path / "run")
    save(store, 1)
    written = json.loads((tmp_path / "run" / INDEX).read_text())
    entry = {**written["checkpoints"][0], "name": name if name[:1] != "/" else str(precious)}
    (tmp_path / "run" / INDEX).write_text(json.dumps({"checkpoints": [entry, entry]}))
    again = CheckpointStore(tmp_path / "run")
    save(again, 2)
    again.prune(Keep("a", "periodic", 1))
    assert precious.read_text() == "mine"
    assert iteration_of(again.newest()) == 2


# --- checkpoints that are directories -------------------------------------------------------------


def save_shards(store, iteration, *, name=None, owner="a", kind="periodic", last=True):
    name = name or f"iter_{iteration}"
    saved = Saved(name, store.location, iteration, 0, kind=kind, owners=(owner,))
    done = store.write_shards(stage(checkpoint(iteration)), saved)
    if last:
        store.mark_last(name)
    return done


def flip_shard(store, name):
    path = Path(store.location) / name / "__0_0.distcp"
    path.write_bytes(flip(bytearray(path.read_bytes())))


def test_a_directory_is_listed_and_loaded_like_a_file(tmp_path):
    store = CheckpointStore(tmp_path / "run")
    saved = save_shards(store, 3)
    assert saved.size == store.storage.size("iter_3") > 40_000
    again = CheckpointStore(tmp_path / "run")
    assert again.index.entries == {"iter_3": saved}
    assert again.storage.names() == ["checkpoints.json", "iter_3", "last_checkpoint"]
    again.index.load()
    assert again.holds("iter_3", 3) and not again.holds("iter_3", 4)
    assert torch.equal(again.newest()[1]["model"]["w"], checkpoint(3)["model"]["w"])
    assert load(f"{tmp_path}/run/iter_3/")["progress"] == {"iter": 3}
    name, state = again.newest(whole=False)  # Verified, and without its tensors.
    assert (name, state) == ("iter_3", {"progress": {"iter": 3}, "model": {}})


def test_a_damaged_directory_is_skipped_for_an_older_one(tmp_path, caplog):
    store = CheckpointStore(tmp_path)
    save(store, 1)
    for iteration in (2, 3, 4):
        save_shards(store, iteration)
    flip_shard(store, "iter_4")
    (tmp_path / "iter_3" / "extra").touch()
    for whole in (True, False):
        assert CheckpointStore(tmp_path).newest(whole=whole)[0] == "iter_2"
    assert "__0_0.distcp' is damaged" in caplog.text and "extra' does not belong" in caplog.text
    shutil.rmtree(tmp_path / "iter_2")
    assert CheckpointStore(tmp_path).newest()[0] == iter_file(1)


def test_another_directory_under_the_name_of_a_listed_one_is_rejected(tmp_path):
    store = CheckpointStore(tmp_path)
    save_shards(store, 1)
    save_shards(store, 2)
    shutil.rmtree(tmp_path / "iter_2")
    shutil.copytree(tmp_path / "iter_1", tmp_path / "iter_2")
    with pytest.raises(CheckpointError, match="is not the directory that was saved"):
        store.load("iter_2")


def test_directories_are_found_when_the_index_is_lost(tmp_path):
    store = CheckpointStore(tmp_path)
    for iteration in (2, 3):
        save_shards(store, iteration)
    (tmp_path / "figures").mkdir()  # Other directories of a run are none of the store's business.
    (tmp_path / "figures" / "manifest.json").touch()
    (tmp_path / "linked").symlink_to(tmp_path / "iter_2")
    for name in (INDEX, LAST):
        (tmp_path / name).unlink()
    lost = CheckpointStore(tmp_path)
    assert lost.storage.names() == ["iter_2", "iter_3"]
    assert iteration_of(lost.newest()) == 3


def test_old_directories_are_pruned_and_the_best_is_kept_by_links(tmp_path):
    store = CheckpointStore(tmp_path)
    save_shards(store, 1)
    best = Saved("best_iter_1", store.location, 1, 0, kind="best", owners=("a",))
    promoted = store.promote("iter_1", best)
    assert os.path.samefile(tmp_path / "iter_1/state.pt", tmp_path / "best_iter_1/state.pt")
    assert promoted.size == store.index.entries["iter_1"].size
    assert not store.storage.frees("iter_1")
    save_shards(store, 2)
    save_shards(store, 3)
    assert store.prune(Keep("a", "periodic", 1)) == ["iter_1", "iter_2"]
    assert sorted(store.index.entries) == ["best_iter_1", "iter_3"]
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == ["best_iter_1", "iter_3"]
    assert iteration_of(("", store.load("best_iter_1"))) == 1
    store.promote("best_iter_1", replace(best, name="best_iter_1"))  # Under its own name: nothing.
    other = replace(best, name="iter_3", kind="periodic")
    store.promote("best_iter_1", other)  # In place of an older directory.
    assert iteration_of(("", store.load("iter_3"))) == 1


def test_what_dead_saves_left_is_deleted_or_restored(tmp_path):
    store = CheckpointStore(tmp_path)
    save_shards(store, 1)
    save_shards(store, 2)
    shutil.copytree(tmp_path / "iter_1", tmp_path / ".iter_9.0a1b2c3d.staged")
    shutil.copytree(tmp_path / "iter_1", tmp_path / ".iter_1.replaced")
    (tmp_path / "iter_2").rename(tmp_path / ".iter_2.replaced")  # Killed between two renames.
    (tmp_path / ".a.pth.staged").touch()
    CheckpointStore(tmp_path).clean()
    assert sorted(os.listdir(tmp_path)) == ["checkpoints.json", "iter_1", "iter_2", LAST]
    assert CheckpointStore(tmp_path).newest()[0] == "iter_2"


def test_on_a_full_disk_the_oldest_directory_makes_way(tmp_path, monkeypatch):
    store = CheckpointStore(tmp_path)
    for iteration in (1, 2):
        save_shards(store, iteration)
    flip_shard(store, "iter_1")
    free = iter([0, 1 << 40])
    monkeypatch.setattr(store.storage, "free_bytes", lambda: next(free))
    save_shards(store, 3)
    assert [name for name in store.storage.names() if "iter" in name] == ["iter_2", "iter_3"]


def test_a_remote_store_takes_no_shards():
    with pytest.raises(CheckpointError, match="cannot hold shards"):
        save_shards(CheckpointStore("memory://shards"), 1)
