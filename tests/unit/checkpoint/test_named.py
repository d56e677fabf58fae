import math

import pytest

from hookloop.checkpoint.named import BestCheckpoint, best_in, find_best, load_named
from hookloop.errors import CheckpointError
from hookloop.hooks import SaveCheckpoint
from hookloop.testing import tiny_trainer


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "one"
    hooks = [
        SaveCheckpoint(every=1, keep=None, best=["val/accuracy", "val/loss"]),
        SaveCheckpoint(every=None, last=False, directory=folder.parent / "far", best="val/loss")
        .named("far"),
    ]  # fmt: skip
    tiny_trainer(*hooks, run_dir=folder, max_epochs=3, val_every=1).train()
    return folder


@pytest.mark.slow
def test_the_best_is_that_of_the_metric_that_was_named_first(run_dir):
    best = find_best(run_dir)
    assert set(best) == {"accuracy", "loss"}
    assert best["accuracy"].name != best["loss"].name
    assert load_named("best", run_dir)[0] == f"{run_dir}/{best['accuracy'].name}"
    label, checkpoint = load_named("best", run_dir, first="loss")
    assert label.endswith(best["loss"].name)
    assert checkpoint["progress"]["iter"] == best["loss"].iter


def test_the_last_and_one_by_its_name_or_path(run_dir):
    assert load_named("last", run_dir)[0] == f"{run_dir}/iter_9.pth"
    for which in ("iter_3.pth", run_dir / "iter_3.pth"):
        assert load_named(which, run_dir)[1]["progress"]["iter"] == 3


def test_other_stores_are_searched(run_dir):
    far = run_dir.parent / "far" / "one"
    best = find_best(run_dir.parent, [str(far)])
    assert load_named("best", run_dir.parent, [str(far)])[0] == f"{far}/{best['loss'].name}"
    assert BestCheckpoint.of("loss", best["loss"]).metric == "val/loss"


def test_entries_of_other_hooks_are_told_apart(run_dir):
    entries = list(find_best(run_dir).values())
    assert best_in(entries, "far") == {}
    assert set(best_in(entries, "save_checkpoint")) == {"accuracy", "loss"}
    assert math.isnan(BestCheckpoint.of("unknown", entries[0]).value)


def test_what_is_missing_is_rejected_with_what_there_is(run_dir, tmp_path):
    with pytest.raises(CheckpointError, match="'iter_33.pth'.*iter_3.pth"):
        load_named("iter_33.pth", run_dir)
    tiny_trainer(SaveCheckpoint(), run_dir=tmp_path / "plain").train()
    with pytest.raises(CheckpointError, match="epoch_1.pth.*epoch_2.pth.*best="):
        load_named("best", tmp_path / "plain")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match="no checkpoint at all"):
        load_named("last", tmp_path / "empty")
