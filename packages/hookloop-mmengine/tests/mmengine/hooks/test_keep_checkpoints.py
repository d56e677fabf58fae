"""The files that CheckpointHook leaves, from the table that was measured with MMEngine."""

import math
from pathlib import Path

import pytest
import torch
from tests.mmengine.parts import Scripted

ACC = [{"acc": value, "loss": 1 - value} for value in (0.1, 0.5, 0.3, 0.5, 0.6, 0.2)]
NO_VALIDATION = {"val_dataloader": None, "val_cfg": None, "val_evaluator": None}


@pytest.fixture
def files(run, tmp_path):
    def files(limit, *, by_epoch=True, rows=(), train_cfg=None, **options):
        checkpoint = {"type": "CheckpointHook", "by_epoch": by_epoch, **options}
        parts = {"default_hooks": {"checkpoint": checkpoint, "logger": None}}
        if not rows:
            parts |= NO_VALIDATION
        else:
            parts["val_evaluator"] = [Scripted(*rows)]
        kind = "max_epochs" if (train_cfg or {}).get("by_epoch", by_epoch) else "max_iters"
        cfg = {"by_epoch": by_epoch, kind: limit, **(train_cfg or {})}
        run(train_cfg=cfg, **parts)
        pointer = tmp_path / "last_checkpoint"
        last = Path(pointer.read_text().strip()).stem if pointer.is_file() else None
        return sorted(path.stem for path in tmp_path.glob("*.pth")), last

    return files


def epochs(*numbers):
    return sorted(f"epoch_{number}" for number in numbers)


def iters(*numbers):
    return sorted(f"iter_{number}" for number in numbers)


@pytest.mark.parametrize(
    ("limit", "options", "kept", "last"),
    [
        (5, {"interval": 1}, (1, 2, 3, 4, 5), 5),
        (5, {"interval": -1}, (5,), 5),
        (5, {"interval": 0}, (5,), 5),
        (5, {"interval": -1, "save_last": False}, (), None),
        (10, {"interval": 5, "max_keep_ckpts": 1}, (10,), 10),
        (9, {"interval": 5, "max_keep_ckpts": 2}, (5, 9), 9),
        (9, {"interval": 3, "max_keep_ckpts": 2, "save_last": False}, (6, 9), 9),
        (10, {"save_begin": 5, "interval": 2}, (5, 7, 9, 10), 10),
        (10, {"save_begin": 5, "interval": 2, "save_last": False}, (5, 7, 9), 9),
        (10, {"save_begin": 5, "interval": 3}, (5, 8, 10), 10),
        (4, {"save_begin": 20, "interval": 1}, (4,), 4),
        (4, {"save_begin": 20, "interval": 1, "save_last": False}, (), None),
        (4, {"save_begin": 4, "interval": 4, "save_last": False}, (4,), 4),
    ],
    ids=str,
)
def test_epochs_that_are_kept(files, limit, options, kept, last):
    found, pointer = files(limit, **options)
    assert found == epochs(*kept)
    assert pointer == (None if last is None else f"epoch_{last}")


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"interval": 3}, (3, 6, 9, 10)),
        ({"interval": 3, "save_last": False}, (3, 6, 9)),
        ({"interval": 3, "save_begin": 4}, (4, 7, 10)),
        ({"interval": 3, "max_keep_ckpts": 1}, (10,)),
    ],
    ids=str,
)
def test_iterations_that_are_kept(files, options, kept):
    found, last = files(10, by_epoch=False, **options)
    assert found == iters(*kept)
    assert last == f"iter_{max(kept)}"


def test_iterations_of_a_training_by_epochs(files):
    found, _ = files(3, by_epoch=False, interval=4, train_cfg={"by_epoch": True})
    assert found == iters(4, 6)


def test_epochs_of_a_training_by_iterations(run, tmp_path):
    checkpoint = {"type": "CheckpointHook", "interval": 1}
    run(by_epoch=False, limit=5, default_hooks={"checkpoint": checkpoint}, **NO_VALIDATION)
    assert [path.name for path in tmp_path.glob("*.pth")] == ["epoch_1.pth"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"save_best": "auto", "interval": 1}, [*epochs(1, 2, 3, 4, 5, 6), "best_acc_epoch_5"]),
        ({"save_best": "auto", "interval": -1}, ["epoch_6", "best_acc_epoch_5"]),
        ({"save_best": "auto", "interval": -1, "save_last": False}, ["best_acc_epoch_5"]),
        # The improvement at 5 saves a periodic file that is off the interval.
        ({"save_best": "auto", "interval": 3}, [*epochs(3, 5, 6), "best_acc_epoch_5"]),
        (
            {"save_best": "auto", "interval": 2, "max_keep_ckpts": 1},
            ["epoch_6", "best_acc_epoch_5"],
        ),
        (
            {"save_best": "auto", "interval": 2, "max_keep_ckpts": 2},
            [*epochs(5, 6), "best_acc_epoch_5"],
        ),
        ({"save_best": "loss"}, ["epoch_6", "best_loss_epoch_5"]),
        ({"save_best": "acc", "rule": "less"}, ["epoch_6", "best_acc_epoch_1"]),
        ({"save_best": ["acc", "loss"]}, ["epoch_6", "best_acc_epoch_5", "best_loss_epoch_5"]),
        (
            {"save_best": ["acc", "loss"], "rule": "greater"},
            ["epoch_6", "best_acc_epoch_5", "best_loss_epoch_1"],
        ),
    ],
    ids=str,
)
def test_the_best_files(files, options, wanted):
    found, _ = files(6, rows=ACC, **options)
    assert found == sorted(wanted)


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ((math.nan, 0.1, math.nan), 2),
        ((0.3, None, 0.4), 3),
        ((0.3, 0.3, 0.3), 1),
        ((-math.inf, 0.1, 0.0), 2),
        ((torch.tensor(0.1), torch.tensor([0.2]), 0.0), 2),
    ],
    ids=str,
)
def test_odd_values_of_a_metric(files, values, best):
    rows = [{"acc": value} for value in values]
    found, _ = files(3, rows=rows, save_best="acc", save_last=False)
    assert found == [f"best_acc_epoch_{best}"]


def test_a_slash_in_a_name_becomes_an_underscore(files):
    rows = [{"x/acc": 0.1}, {"x/acc": 0.2}]
    found, _ = files(2, rows=rows, save_best="x/acc", save_last=False)
    assert found == ["best_x_acc_epoch_2"]


def test_a_metric_that_is_missing_is_an_error(files):
    with pytest.raises(KeyError, match="save_best: acc is not in the metrics: other"):
        files(1, rows=[{"other": 1.0}], save_best="acc")


def test_the_message_hub_learns_what_was_saved(run):
    checkpoint = {"type": "CheckpointHook", "interval": 1, "save_best": ["acc", "loss"]}
    parts = {"default_hooks": {"checkpoint": checkpoint}, "val_evaluator": [Scripted(*ACC)]}
    hub = run(limit=2, **parts).message_hub
    assert hub.get_info("last_ckpt") == "epoch_2.pth"
    assert hub.get_info("best_score_acc") == 0.5
    assert hub.get_info("best_ckpt_loss") == "best_loss_epoch_2.pth"
    assert hub.get_info("best_score") is None


@pytest.mark.parametrize("left_out", ["save_optimizer", "save_param_scheduler"])
def test_parts_can_be_left_out(files, tmp_path, left_out):
    files(1, **{left_out: False})
    saved = torch.load(tmp_path / "epoch_1.pth", weights_only=True)
    ours = {"save_optimizer": "optimizers", "save_param_scheduler": "schedules"}[left_out]
    assert not saved.get(ours)
    assert saved["model"]


def test_files_go_to_another_directory(files, tmp_path):
    found, last = files(1, out_dir=str(tmp_path / "out"))
    assert found == []
    assert last == "epoch_1"
    assert (tmp_path / "out" / tmp_path.name / "epoch_1.pth").is_file()


def test_a_resumed_run_remembers_the_best(run, tmp_path):
    def part(limit, rows, **options):
        checkpoint = {"type": "CheckpointHook", "interval": 1, "save_best": "acc"}
        evaluator = [Scripted(*rows)]
        hooks = {"checkpoint": checkpoint}
        run(limit=limit, default_hooks=hooks, val_evaluator=evaluator, **options)

    part(2, ACC)
    # The file of epoch 2 is older than its validation, which the resumed run repeats.
    part(4, [{"acc": 0.5}, {"acc": 0.4}, {"acc": 0.45}], resume=True)
    assert [path.name for path in tmp_path.glob("best*")] == ["best_acc_epoch_2.pth"]
