import pytest
import torch
from tests.names import epoch_file
from tests.tiny import Record, assert_same_bits, make_data, make_model, make_trainer

from hookloop.engine.hook import Hook
from hookloop.errors import (
    HookloopError,
    RunExistsError,
)
from hookloop.hooks import StepSchedules


def test_zero_hooks_train_and_leave_nothing_on_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = make_trainer(max_epochs=2).train()
    assert (outcome.status, outcome.exit_code) == ("completed", 0)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_directory_of_its_own_gets_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trainer = make_trainer(default_hooks={"console": None})
    outcome = trainer.train()
    assert outcome.run_dir is not None and outcome.run_dir.parent.name == "runs"
    assert {path.name for path in outcome.run_dir.iterdir()} == {
        "checkpoints.json",
        "environment.json",
        epoch_file(1),
        "hooks.json",
        "interventions.jsonl",
        "last_checkpoint",
        "metrics.jsonl",
        "run.log",
        "summary.json",
        "trained_with.yaml",
    }


def test_a_second_run_into_the_same_directory_is_rejected(tmp_path):
    options = {"default_hooks": {"console": None}, "run_dir": tmp_path / "r"}
    make_trainer(**options).train()
    with pytest.raises(RunExistsError, match="already holds a run"):
        make_trainer(**options).train()


def test_a_stop_ends_after_the_iteration_with_its_reason(tmp_path):
    class Enough(Hook):
        def after_forward(self, run):
            run.stop("enough")
            run.stop("a later reason does not count")

    seen = Record()
    outcome = make_trainer(hooks=[Enough(), seen], run_dir=tmp_path).train()
    assert (outcome.status, outcome.reason, outcome.exit_code) == ("stopped", "enough", 0)
    assert seen.points[-4:] == ["after_train_iter", "on_stop", "after_train", "after_run"]
    assert "after_train_epoch" not in seen.points


def test_a_stop_at_an_epochs_end_still_validates_and_ends_the_epoch(tmp_path):
    class Enough(Hook):
        def after_train_epoch(self, run):
            run.stop("enough")

    seen = Record()
    make_trainer(
        hooks=[Enough(), seen], max_epochs=5, val_data=make_data(4), run_dir=tmp_path
    ).train()
    ending = ["after_val", "after_epoch", "after_epoch_profile", "on_stop", "after_train"]
    assert seen.points[-6:-1] == ending
    assert seen.points.count("before_epoch") == 1


def test_training_continues_in_a_second_call():
    trainer = make_trainer(max_epochs=4)
    trainer.on("after_train_epoch")(
        lambda run: run.stop("half") if run.progress.epoch == 2 else None
    )
    trainer._planner.hooks[-1].name = "stopper"
    assert trainer.train().status == "stopped"
    assert trainer.train().status == "completed"
    assert trainer.run.progress.iter == 12
    straight = make_trainer(max_epochs=4)
    straight.train()
    assert_same_bits(trainer.run.model, straight.run.model)


# --- continued in the same process ---------------------------------------------------------------


def make_noisy(**options):
    """Dropout, shuffled data, a validation and a schedule: whatever depends on the moment."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return make_trainer(
        model=model,
        train_data=make_data(shuffle=True),
        val_data=make_data(),
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9),
        hooks=[StepSchedules()],
        seed=1,
        **options,
    )


@pytest.mark.parametrize(
    ("first", "then", "options"),
    [
        pytest.param({"max_epochs": 2}, [{"max_epochs": 3}, {"max_epochs": 6}], {}, id="epochs"),
        pytest.param({"max_iters": 4}, [{"max_iters": 11}, {"max_iters": 18}], {}, id="iterations"),
        pytest.param(
            {"max_epochs": 2}, [{"max_epochs": 6}], {"val_every": "3 epochs"}, id="one validation"
        ),
    ],
)
def test_a_training_is_continued_as_one_longer_training(first, then, options):
    whole = make_noisy(max_epochs=6, **options)
    whole.train()
    parts = make_noisy(**({"max_epochs": None} | first), **options)
    parts.train()
    for more in then:
        torch.rand(3)  # What a notebook does in between.
        parts.validate()
        assert parts.train(**more).status == "completed"
    assert parts.run.progress.iter == whole.run.progress.iter == 18
    assert_same_bits(parts.run.model, whole.run.model)


def test_a_launcher_that_says_only_half_is_rejected(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(HookloopError, match="WORLD_SIZE.*RANK"):
        make_trainer()


def test_resume_at_an_epochs_end_ends_with_the_same_bits(tmp_path):
    def trainer(run_dir, max_epochs, **options):
        model = torch.nn.Sequential(make_model(), torch.nn.Dropout(0.3))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        return make_trainer(
            model=model,
            optimizer=optimizer,
            schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9),
            train_data=make_data(14, shuffle=True),
            max_epochs=max_epochs,
            default_hooks={"console": None},
            run_dir=run_dir,
            seed=3,
            **options,
        )

    straight = trainer(tmp_path / "a", 4)
    straight.train()
    trainer(tmp_path / "b", 2).train()
    resumed = trainer(tmp_path / "b", 4, resume=True)
    resumed.train()
    assert_same_bits(resumed.run.model, straight.run.model)
    assert resumed.run.metrics.mean("train/loss") == straight.run.metrics.mean("train/loss")


def test_a_device_that_is_not_there_is_rejected(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(HookloopError, match="device='cuda:1'.*CUDA"):
        make_trainer(device="cuda:1")
