"""The runner's own hooks: loading, dynamic intervals, and MMEngine's keys in files."""

from pathlib import Path

import pytest
import torch
from tests.mmengine.parts import Seen

from hookloop_mmengine.hooks import Hook

ADAM = {"optimizer": {"type": "Adam", "lr": 0.1}}


@pytest.fixture
def foreign(run, tmp_path):
    """Trains two epochs and keeps only what a file of MMEngine holds."""

    def foreign(**options):
        run(limit=2, work_dir=str(tmp_path / "first"), **options)
        saved = torch.load(tmp_path / "first" / "epoch_2.pth", weights_only=True)
        keys = ("meta", "state_dict", "message_hub", "optimizer", "param_schedulers")
        path = tmp_path / "mmengine.pth"
        torch.save({key: saved[key] for key in keys}, path)
        return str(path), saved

    return foreign


def test_files_have_mmengines_keys_too(foreign):
    _, saved = foreign(param_scheduler={"type": "ExponentialLR", "gamma": 0.5})
    assert saved["state_dict"].keys() == saved["model"].keys()
    assert saved["meta"]["epoch"] == 2
    assert saved["optimizer"]["param_groups"] == saved["optimizers"]["default"]["param_groups"]
    assert len(saved["param_schedulers"]) == 1
    assert "train/loss" in saved["message_hub"]["log_scalars"]


def test_mmengines_keys_share_their_tensors(run, tmp_path):
    run(limit=1)
    saved = torch.load(tmp_path / "epoch_1.pth", weights_only=True)
    ours, theirs = saved["model"]["linear.weight"], saved["state_dict"]["linear.weight"]
    assert ours.untyped_storage().data_ptr() == theirs.untyped_storage().data_ptr()


def test_weights_alone_are_loaded(foreign, run, tmp_path):
    path, saved = foreign()
    seen = Seen()
    options = {"load_from": path, "work_dir": str(tmp_path / "second")}
    runner = run(seen, limit=1, optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.0}}, **options)
    assert (runner.epoch, runner.iter) == (1, 2)
    assert seen.weights[0] == float(saved["model"]["linear.weight"])


@pytest.mark.slow
def test_a_training_of_mmengine_is_continued(foreign, run, tmp_path):
    schedule = {"type": "ExponentialLR", "gamma": 0.5}
    path, _ = foreign(optim_wrapper=ADAM, param_scheduler=schedule)
    options = {"optim_wrapper": ADAM, "param_scheduler": {**schedule, "end": 9}}
    whole, resumed = Seen(), Seen()
    runner = run(
        resumed, limit=4, load_from=path, resume=True, work_dir=str(tmp_path / "second"), **options
    )
    run(whole, limit=4, work_dir=str(tmp_path / "whole"), **options)
    assert (runner.epoch, runner.iter) == (4, 8)
    assert len(resumed.weights) == 4
    # The first part ended its schedule with the training, so only its last step differs.
    assert resumed.rates == pytest.approx([0.025, 0.0125])


def test_the_counters_of_a_training_by_iterations(foreign, run, tmp_path):
    path, _ = foreign()
    seen = Seen()
    options = {"load_from": path, "resume": True, "work_dir": str(tmp_path / "second")}
    runner = run(seen, by_epoch=False, limit=6, **options)
    assert (runner.iter, runner.epoch) == (6, 0)
    assert len(seen.weights) == 2


def test_hooks_see_the_loaded_checkpoint_and_may_change_it(foreign, run, tmp_path):
    class Change(Hook):
        def after_load_checkpoint(self, runner, checkpoint):
            self.seen = (checkpoint["meta"]["epoch"], runner._resume)
            for value in checkpoint["state_dict"].values():
                value.zero_()

    class First(Hook):
        def before_train(self, runner):
            self.weight = float(runner.model.linear.weight.detach())

    path, _ = foreign()
    change, first = Change(), First()
    run(change, first, limit=3, load_from=path, work_dir=str(tmp_path / "second"))
    assert change.seen == (2, False)
    assert first.weight == 0


def test_a_resume_without_a_checkpoint_starts_from_the_beginning(make, tmp_path, capsys):
    runner = make(limit=1, resume=True, log_level="WARNING")
    runner.train()
    assert runner.epoch == 1
    assert f"There is no checkpoint in {tmp_path} to resume" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("cfg", "validated"),
    [
        ({"max_epochs": 10, "val_interval": 5, "dynamic_intervals": [(7, 1)]}, [5, 6, 7, 8, 9, 10]),
        ({"max_epochs": 10, "val_interval": 3}, [3, 6, 9, 10]),
        ({"max_epochs": 10, "val_interval": 3, "val_begin": 5}, [6, 9, 10]),
        ({"max_epochs": 5, "val_interval": 20}, [5]),
        ({"max_epochs": 5, "val_begin": 11}, []),
    ],
    ids=str,
)
def test_epochs_that_are_validated(run, cfg, validated):
    class Note(Hook):
        def __init__(self):
            self.epochs = []

        def before_val(self, runner):
            self.epochs.append(runner.epoch)

    note = Note()
    run(note, train_cfg={"by_epoch": True, **cfg})
    assert note.epochs == validated


def test_averaged_weights_are_in_mmengines_places(run, tmp_path):
    seen = Seen()
    run({"type": "EMAHook", "momentum": 0.5}, seen, limit=1)
    saved = torch.load(tmp_path / "epoch_1.pth", weights_only=True)
    first, second = seen.weights
    assert float(saved["state_dict"]["linear.weight"]) == pytest.approx((first + second) / 2)
    assert float(saved["ema_state_dict"]["module.linear.weight"]) == pytest.approx(second)
    assert float(saved["model"]["linear.weight"]) == pytest.approx(second)


def test_the_scale_of_mixed_precision_is_resumed(run, tmp_path):
    wrapper = {"type": "AmpOptimWrapper", "loss_scale": {"init_scale": 8.0, "growth_interval": 1},
               "optimizer": {"type": "SGD", "lr": 0.1}}  # fmt: skip
    first = run(limit=1, optim_wrapper=wrapper)
    scale = first.optim_wrapper.loss_scaler.get_scale()
    assert scale == 32

    class Look(Hook):
        def before_train(self, runner):
            self.scale = runner.optim_wrapper.loss_scaler.get_scale()

    look = Look()
    run(look, limit=2, optim_wrapper=wrapper, resume=True)
    assert look.scale == scale
    assert Path(tmp_path / "epoch_2.pth").is_file()
