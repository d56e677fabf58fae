"""Which checkpoint of a run is taken, and from which of its stores."""

import logging
import math
from pathlib import Path

import pytest
import torch
from tests.names import epoch_file, iter_file
from tests.tiny import make_classifier, make_trainer

from hookloop import Hook, Run
from hookloop.checkpoint.choose import (
    BestCheckpoint,
    best_in,
    choose,
    find_best,
    load_newest,
    search_locations,
    trusted_location,
)
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.storage import is_same_location
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.errors import CheckpointError
from hookloop.hooks import AverageWeights, SaveCheckpoint
from hookloop.runs.checkpoint_names import LAST
from hookloop.runs.layout import Pointer
from hookloop.runs.policy import hash_of


def train(run_dir: Path, *hooks: object, **saving: object) -> torch.nn.Module:
    trainer = make_classifier(
        hooks=[SaveCheckpoint(**saving), *hooks], run_dir=run_dir, max_epochs=3
    )
    trainer.train()
    return trainer.run.model


def test_the_last_is_taken_where_no_best_is_kept(tmp_path: Path) -> None:
    model = train(tmp_path)
    chosen = choose(tmp_path)
    assert chosen.kind == "last" and chosen.part == "model" and chosen.path.endswith(epoch_file(3))
    assert all(torch.equal(chosen.weights[n], v) for n, v in model.state_dict().items())
    label = f"weights of '{tmp_path}/{epoch_file(3)}' (last, iteration 9)"
    assert str(chosen) == f"{label}, of run {chosen.run_id}"
    with pytest.raises(CheckpointError, match="keeps no best checkpoint"):
        choose(tmp_path, "best")


def test_the_best_is_taken_where_one_is_kept(tmp_path: Path) -> None:
    train(tmp_path, best=["loss", "accuracy"])
    chosen = choose(tmp_path)
    assert chosen.kind == "best" and "best_loss" in chosen.path
    assert choose(tmp_path, "last").kind == "last"
    for name in (Path(chosen.path).name, chosen.path):
        named = choose(tmp_path, name)
        assert named.kind == "file" and named.saved == chosen.saved


class Peak(Hook):
    """Puts a number that is best after the second epoch, long before the loss."""

    writes = ("val/peak",)

    def after_val_epoch(self, run: Run, metrics: object) -> None:
        run.metrics.put("val/peak", -abs(run.progress.epoch - 2))


@pytest.mark.parametrize("best", [["loss", "peak"], ["peak", "loss"]])
def test_of_several_bests_the_one_of_the_metric_that_was_named_first_is_taken(
    tmp_path: Path, best: list[str]
) -> None:
    rules = ["less" if metric == "loss" else "greater" for metric in best]
    train(tmp_path, Peak(), best=best, rule=rules)
    bests = find_best(tmp_path)
    assert (bests["loss"].iter, bests["peak"].iter) == (9, 6)
    chosen = choose(tmp_path)
    assert chosen.path == f"{tmp_path}/{bests[best[0]].name}"
    assert chosen.saved == bests[best[0]] and chosen.iteration == bests[best[0]].iter
    assert chosen.others == (bests[best[1]].name,)
    other = choose(tmp_path, "best", metric=best[1])
    assert other.saved == bests[best[1]] and other.iteration == bests[best[1]].iter
    entries = list(bests.values())
    assert best_in(entries, "far") == {}
    assert set(best_in(entries, "save_checkpoint")) == {"loss", "peak"}
    assert BestCheckpoint.of("loss", bests["loss"]).metric == "val/loss"
    assert math.isnan(BestCheckpoint.of("unknown", entries[0]).value)


def test_a_best_whose_file_is_gone_is_not_taken(tmp_path: Path) -> None:
    train(tmp_path, best=["loss", "accuracy"])
    Path(choose(tmp_path, "best").path).unlink()
    assert "best_accuracy" in choose(tmp_path, "best").path
    Path(choose(tmp_path, "best").path).unlink()
    assert choose(tmp_path).kind == "last"
    with pytest.raises(CheckpointError, match="epoch_2.pth"):
        choose(tmp_path, "best")


def test_a_store_that_was_not_given_is_named_and_not_opened(tmp_path: Path) -> None:
    train(tmp_path / "run", directory=str(tmp_path / "store"), best="loss")
    with pytest.raises(CheckpointError, match="store/run/.*--checkpoint"):
        choose(tmp_path / "run")


def test_averaged_weights_are_those_with_which_the_run_evaluated(tmp_path: Path) -> None:
    model = train(tmp_path, AverageWeights())
    chosen = choose(tmp_path)
    assert chosen.part == "averaged" and str(chosen).startswith("averaged weights of")
    name, raw = next(iter(model.state_dict().items()))
    assert not torch.equal(chosen.weights[name], raw)


def test_another_store_of_the_run_is_searched(tmp_path: Path) -> None:
    train(tmp_path / "run", directory=str(tmp_path / "store"), best="loss")
    store = str(tmp_path / "store" / "run")
    for which in ("best", "last", epoch_file(2)):
        assert choose(tmp_path / "run", which, [store]).path.startswith(store)


def test_a_file_of_weights_alone_is_taken(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"w": torch.ones(2)}, tmp_path / "a.safetensors")
    torch.save({"w": torch.ones(2)}, tmp_path / "a.pth")
    torch.save({"note": "nothing"}, tmp_path / "b.pth")
    for name in ("a.safetensors", "a.pth"):
        assert choose(tmp_path, str(tmp_path / name)).weights["w"].tolist() == [1, 1]
    with pytest.raises(CheckpointError, match="has no weights under"):
        _ = choose(tmp_path, "b.pth").weights
    (tmp_path / "c.safetensors").write_text("not tensors")
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        choose(tmp_path, "c.safetensors")


def test_what_is_not_there_is_rejected(tmp_path: Path) -> None:
    make_trainer(run_dir=tmp_path / "run").train()  # No hook saves.
    with pytest.raises(CheckpointError, match="no checkpoint at all"):
        choose(tmp_path / "run")
    with pytest.raises(CheckpointError, match="'best'"):
        choose(tmp_path / "run", "bets")


def test_the_metadata_tells_where_the_weights_come_from(tmp_path: Path) -> None:
    train(tmp_path)
    about = choose(tmp_path).describe({"seed": 1})
    assert about["iter"] == 9 and about["epoch"] == 3 and "val/accuracy" in about["metrics"]
    assert about["config_sha256"] == hash_of({"seed": 1, "import_path": ["anywhere"]})
    assert about["config_sha256"] != hash_of({"seed": 2})


def save(location, iteration, *, last=True):
    store, name = CheckpointStore(location), iter_file(iteration)
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
    assert (label, checkpoint["progress"]) == (f"{run_dir}/{iter_file(5)}", {"iter": 5})


def test_the_store_that_the_pointer_names_comes_first(run_dir, location):
    save(run_dir, 9)
    save(location, 4)
    point_to(run_dir, f"{location}/{iter_file(4)}")
    assert load_newest(str(run_dir), [location])[0] == f"{location}/{iter_file(4)}"


def test_a_store_without_a_good_checkpoint_is_skipped_for_the_next_one(run_dir, location, caplog):
    caplog.set_level(logging.WARNING)
    save(run_dir, 2)
    save(location, 4)
    store = CheckpointStore(location)
    store.storage.remove(iter_file(4))
    point_to(run_dir, f"{location}/{iter_file(4)}")
    assert load_newest(str(run_dir), [location])[0] == f"{run_dir}/{iter_file(2)}"
    assert f"Looking in '{run_dir}' instead." in caplog.text


def test_if_no_store_has_a_good_one_all_reasons_are_given(run_dir, tmp_path):
    for directory in (run_dir, tmp_path / "store"):
        save(directory, 1)
        (directory / iter_file(1)).write_bytes(b"")
    with pytest.raises(CheckpointError) as caught:
        load_newest(str(run_dir), [str(tmp_path / "store")])
    assert str(caught.value).count("No checkpoint in") == 2


def test_a_url_is_its_own_store():
    assert search_locations("memory://x", ["elsewhere"]) == [("memory://x", None)]


def test_without_a_pointer_every_store_tries_its_own_last(run_dir):
    assert search_locations(str(run_dir), ["a"]) == [(str(run_dir), None), ("a", None)]


def test_with_a_pointer_the_others_do_not_try_their_own_last(run_dir):
    point_to(run_dir, iter_file(1))
    assert search_locations(str(run_dir), ["a"]) == [(str(run_dir), None), ("a", "")]
    point_to(run_dir, f"memory://x/{iter_file(1)}")
    found = search_locations(str(run_dir), ["a", "memory://x"])
    assert found == [("memory://x", iter_file(1)), (str(run_dir), ""), ("a", "")]


def test_a_pointer_to_a_foreign_store_is_rejected_and_not_opened(run_dir, monkeypatch):
    opened = []
    monkeypatch.setattr("fsspec.core.url_to_fs", opened.append)
    point_to(run_dir, f"memory://stranger/{iter_file(1)}")
    with pytest.raises(CheckpointError, match="'memory://stranger/iter_1.pth'"):
        search_locations(str(run_dir))
    assert opened == []


def test_a_store_that_was_moved_is_known_by_its_own_pointer(run_dir, location):
    save(location, 4)
    pointer = Pointer(iter_file(4), "/old/store")
    assert trusted_location(pointer, str(run_dir), [location]) == location
    with pytest.raises(CheckpointError, match="is not a store of this run"):
        trusted_location(Pointer(iter_file(3), "/old/store"), str(run_dir), [location])


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
