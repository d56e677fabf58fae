import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tiny import Record, assert_same_bits, make_data, make_model, make_trainer, record

from hookloop import Interrupted, Schedule, Trainer
from hookloop.core.hook import Hook
from hookloop.errors import (
    ArgumentError,
    CheckpointError,
    DataError,
    HookError,
    HookloopError,
    ModelError,
    RunExistsError,
)
from hookloop.hooks import StepSchedules, StopAfter, StopOnNaN, StopOnPlateau


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
        "epoch_1.pth",
        "last_checkpoint",
        "metrics.jsonl",
        "run.log",
        "summary.json",
    }


def test_a_second_run_into_the_same_directory_is_refused(tmp_path):
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


def test_a_failure_is_told_to_hooks_and_raised_whole(tmp_path):
    outcomes = []

    class Look(Hook):
        def on_exception(self, run, error):
            outcomes.append(error)

        def after_run(self, run):
            outcomes.append(run.outcome)

    def step(run, batch):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        make_trainer(hooks=[Look()], step=step, run_dir=tmp_path).train()
    assert isinstance(outcomes[0], ZeroDivisionError)
    assert (outcomes[1].status, outcomes[1].exit_code) == ("failed", 1)
    assert outcomes[1].reason == "ZeroDivisionError: mine"


def test_a_hook_that_fails_in_the_end_hides_neither_the_failure_nor_the_other_hooks(tmp_path):
    seen = Record()

    class Worse(Hook):
        def on_exception(self, run, error):
            raise OSError("worse")

        def after_run(self, run):
            raise OSError("worst")

    def step(run, batch):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError) as error:
        make_trainer(hooks=[Worse(), seen], step=step, run_dir=tmp_path).train()
    notes = "\n".join(error.value.__notes__)
    assert "OSError: worse" in notes and "OSError: worst" in notes
    assert seen.points[-1] == "after_run"


def test_training_goes_on_in_a_second_call():
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


SCRIPT = """
import os, signal, sys
sys.path.insert(0, {root!r})
from tests.tiny import make_trainer, make_data
from hookloop.hooks import StopOnSignal, WriteMetrics, SaveCheckpoint

trainer = make_trainer(
    hooks=[StopOnSignal(), WriteMetrics(), SaveCheckpoint()], max_epochs=3, run_dir={run_dir!r}
)

@trainer.on("after_backward")
def strike(run):
    if run.progress.iter == 3:
        for _ in range({times}):
            os.kill(os.getpid(), signal.{name})

@trainer.on("after_train")
def ended(run):
    print("ended in order", run.progress.iter, flush=True)

trainer.train()
print("must not be reached")
"""


def strike(tmp_path, name, times=1):
    script = SCRIPT.format(
        root=str(Path(__file__).parents[3]), run_dir=str(tmp_path / "r"), name=name, times=times
    )
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_the_run_in_order_with_its_exit_code(tmp_path, name):
    done = strike(tmp_path, name)
    assert done.returncode == 128 + signal.Signals[name]
    assert done.stdout == "ended in order 4\n"
    assert f"{name}: ending after this iteration" in done.stderr
    summary = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert (summary["status"], summary["exit_code"]) == ("interrupted", done.returncode)
    assert (tmp_path / "r" / "iter_4.pth").is_file()


@pytest.mark.slow
def test_a_second_signal_ends_at_once(tmp_path):
    done = strike(tmp_path, "SIGTERM", times=2)
    assert done.returncode == -signal.SIGTERM
    assert "ended in order" not in done.stdout


def test_a_signal_restores_the_handlers_that_were_there(tmp_path):
    from hookloop.hooks import StopOnSignal

    before = signal.getsignal(signal.SIGTERM)
    trainer = make_trainer(hooks=[StopOnSignal()], max_epochs=5, run_dir=tmp_path)
    trainer.on("after_update")(lambda run: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Interrupted) as ended:
        trainer.train()
    assert ended.value.code == 143
    assert trainer.run.progress.iter == 1
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_ends_a_run_that_was_stopping_anyway(tmp_path):
    from hookloop.hooks import StopOnSignal

    trainer = make_trainer(hooks=[StopOnSignal()], max_epochs=5, run_dir=tmp_path)

    @trainer.on("after_update")
    def stop_and_strike(run):
        run.stop("enough")
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trainer.train()


def test_what_was_being_saved_is_not_lost_with_a_state_that_cannot_be(tmp_path, monkeypatch):
    from hookloop.trainer.checkpoints import CheckpointSaver

    closed = []
    monkeypatch.setattr(CheckpointSaver, "close", lambda self, run: closed.append(run))

    class Odd(Hook):
        def state_dict(self):
            return {"odd": object()}

        def after_train_iter(self, run):
            run.save()

        def on_exception(self, run, error):
            run.save()

    with pytest.raises(CheckpointError, match="holds a object"):
        make_trainer(hooks=[Odd()], run_dir=tmp_path).train()
    assert closed


def test_a_signal_during_validation_leaves_it_unfinished(tmp_path):
    from hookloop.hooks import StopOnSignal

    seen = Record()
    trainer = make_trainer(
        hooks=[StopOnSignal(), seen], max_epochs=5, val_data=make_data(), run_dir=tmp_path
    )
    trainer.on("after_val_iter")(lambda run: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Interrupted):
        trainer.train()
    assert seen.points.count("after_val_iter") == 1
    assert "after_val_epoch" not in seen.points
    assert seen.points[-1] == "after_run"


def test_default_hooks_are_changed_by_name():
    class Mine(Hook):
        def after_train_iter(self, run):
            pass

    def names(changes):
        return [hook.name for hook in make_trainer(default_hooks=changes)._planner.hooks]

    standard = [
        "timing", "console", "metrics", "schedule", "sampler", "nan", "checkpoint", "signals",
    ]  # fmt: skip
    assert names(None) == standard
    assert names(False) == []
    assert names({"console": None}) == [name for name in standard if name != "console"]
    assert names({"extra": Mine()}) == [*standard, "extra"]
    trainer = make_trainer(default_hooks={"timing": Mine()})
    assert type(trainer._planner.hooks[0]) is Mine
    with pytest.raises(HookError, match="no 'consle' to remove. Did you mean 'console'"):
        names({"consle": None})


def test_hooks_may_be_named_by_a_mapping():
    class Mine(Hook):
        def after_train_iter(self, run):
            pass

    trainer = make_trainer(hooks={"one": Mine(), "two": Mine(), "three": None})
    assert [row.hook for row in trainer.timetable()] == ["one", "two"]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"train_data": []}, DataError, "train_data is empty"),
        ({"val_data": {"a": []}}, DataError, r"val_data\['a'\] is empty"),
        ({"train_data": 3}, DataError, "must be an iterable"),
        ({"train_data": iter([1]), "max_epochs": 2}, DataError, "read only once"),
        ({"optimizer": None}, ModelError, "no optimizer"),
        ({"max_epochs": None}, ModelError, "would never end"),
        ({"max_epochs": 0}, ModelError, "max_epochs must be at least 1"),
        ({"accumulate": 0}, ModelError, "accumulate must be at least 1"),
        ({"precision": "fp8"}, ModelError, "write fp32, bf16 or fp16"),
        ({"device": "warp"}, HookloopError, "device='warp'"),
        ({"val_every": "sometimes"}, HookloopError, "not an interval"),
        ({"step": lambda run, batch: None, "loss": lambda o, t: o}, ModelError, "both given"),
        ({"step": {"a": lambda run, batch: None}}, ModelError, "step= names a"),
        ({"resume": True}, CheckpointError, "needs run_dir"),
        ({"load_from": "nowhere.pth"}, CheckpointError, "nowhere.pth"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_training(options, kind, message):
    with pytest.raises(kind, match=message):
        make_trainer(**options).check()


def test_the_default_hooks_do_not_pass_for_an_end():
    with pytest.raises(ModelError, match="would never end.*StopAfter.*ends_training = True"):
        make_trainer(max_epochs=None, default_hooks=None, hooks=[StopOnNaN()]).check()


def test_a_hook_that_ends_the_training_is_a_limit():
    class Enough(Hook):
        ends_training = True

        def after_train_iter(self, run):
            run.stop("enough")

    for hook in (Enough(), StopAfter(iterations=1)):
        assert make_trainer(max_epochs=None, hooks=[hook]).train().status == "stopped"
    make_trainer(max_epochs=None, hooks=[StopOnPlateau("val/loss")], val_data=make_data()).check()


def test_a_loop_of_ones_own_may_end_by_itself():
    trainer = make_trainer(max_epochs=None)
    with trainer.loop() as batches:
        for _ in batches:
            break
    assert trainer.run.progress.iter == 1


def test_a_schedule_of_another_optimizer_is_rejected():
    model = make_model()
    ours, other = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
    schedule = torch.optim.lr_scheduler.ExponentialLR(other, 0.5)
    trainer = make_trainer(model=model, optimizer=ours, schedule=schedule, hooks=[StepSchedules()])
    with pytest.raises(ModelError, match="drives an optimizer that is not in this run"):
        trainer.check()


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


def test_a_training_that_has_nothing_left_to_do_is_rejected():
    trainer = make_trainer(max_epochs=2)
    trainer.train()
    for again in ({}, {"max_epochs": 2}, {"max_epochs": 1}):
        with pytest.raises(ModelError, match=r"nothing left to train: train\(max_epochs=...\)"):
            trainer.train(**again)
    with pytest.raises(ModelError, match="max_epochs='3': it must be a whole number"):
        trainer.train(max_epochs="3")
    assert trainer.run.progress.max_epochs == 2
    trainer.train(max_iters=7, max_epochs=9)
    with pytest.raises(ModelError, match="max_iters=7 is reached"):
        trainer.train()


@pytest.mark.parametrize("name", ["max_epochs", "max_epoch", "model", "hooks", "run_dir"])
def test_a_setting_that_would_come_too_late_is_rejected(name):
    trainer = make_trainer()
    with pytest.raises(ArgumentError, match="cannot be set.*would have no effect"):
        setattr(trainer, name, 6)
    trainer.notes = "of the user's own"


def test_a_model_without_trainable_parameters_is_refused():
    model = make_model()
    for parameter in model.parameters():
        parameter.requires_grad = False
    with pytest.raises(ModelError, match="no trainable parameters"):
        make_trainer(model=model)


def test_an_optimizer_of_another_model_is_refused():
    other = torch.optim.SGD(make_model().parameters(), lr=0.1)
    with pytest.raises(ModelError, match="holds no trainable parameter of this model"):
        make_trainer(optimizer=other)


def test_drop_last_that_drops_everything_is_explained():
    with pytest.raises(DataError, match="3 samples are fewer than one batch of 4"):
        make_trainer(train_data=make_data(3, drop_last=True))


def test_a_schedule_that_nobody_steps_is_refused():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    with pytest.raises(HookError, match="no hook steps it"):
        make_trainer(model=model, optimizer=optimizer, schedule=schedule).check()


def rates(interval_at, tmp_path, **options):
    from hookloop.hooks import StepSchedules

    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    seen, calls = record(["after_train_iter"], lambda run: run.optimizer.param_groups[0]["lr"])
    make_trainer(
        model=model,
        optimizer=optimizer,
        schedule=interval_at(optimizer),
        hooks=[StepSchedules(), seen],
        run_dir=tmp_path,
        **options,
    ).train()
    return [note for _, note in calls]


def test_schedules_step_by_iteration_epoch_and_metric(tmp_path):
    halve = torch.optim.lr_scheduler.ExponentialLR
    by_iter = rates(lambda o: halve(o, 0.5), tmp_path / "a", max_iters=4)
    assert by_iter == [1.0, 0.5, 0.25, 0.125]  # what was used: the schedule steps afterwards
    by_epoch = rates(
        lambda o: Schedule(halve(o, 0.5), every="1 epoch"), tmp_path / "b", max_iters=4
    )
    assert by_epoch == [1.0, 1.0, 1.0, 0.5]
    plateau = rates(
        lambda o: Schedule(
            torch.optim.lr_scheduler.ReduceLROnPlateau(
                o, factor=0.1, patience=0, threshold=1e9, threshold_mode="abs"
            ),
            metric="val/loss",
        ),
        tmp_path / "c",
        max_epochs=3,
        val_data=make_data(4),
    )
    assert plateau[::3] == pytest.approx([1.0, 1.0, 0.1])


def test_reduce_on_plateau_needs_a_metric():
    optimizer = torch.optim.SGD(make_model().parameters(), lr=1.0)
    with pytest.raises(ModelError, match="metric='val/loss'"):
        Schedule(torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer))


def test_several_processes_are_refused_for_now(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(HookloopError, match="trains in one process"):
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


def test_a_trainer_needs_keywords():
    with pytest.raises(TypeError):
        Trainer(make_model(), make_data())  # type: ignore[misc]


def test_a_failure_in_an_evaluation_says_in_which():
    wrong = [(torch.ones(2, 3), torch.ones(2, 1))]
    trainer = make_trainer(val_data={"clean": make_data(4), "wrong": wrong})
    with pytest.raises(RuntimeError) as caught:
        trainer.train()
    assert caught.value.__notes__ == [
        "in the phase val, after iteration 3: the batch is (float32[2, 3], float32[2, 1])",
        "while evaluating val_data['wrong'], batch 1",
    ]


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(HookloopError, match="device='cuda:1': torch finds no CUDA device here"):
        make_trainer(device="cuda:1")


def test_a_forgotten_return_is_refused():
    with pytest.raises(ModelError, match="loss= returned None: return the loss"):
        make_trainer(loss=lambda output, targets: None).train()

    class Silent(torch.nn.Linear):
        def forward(self, inputs, targets):
            super().forward(inputs)

    with pytest.raises(ModelError, match="The model returned None: return the loss"):
        make_trainer(model=Silent(4, 1), loss=None).train()


def test_whole_numbers_of_numpy_are_taken(tmp_path: Path) -> None:
    trainer = make_trainer(
        max_epochs=np.int64(1), seed=np.int64(3), run_dir=tmp_path / "run", default_hooks=None
    )
    assert trainer.train().status == "completed"
    assert trainer.train(max_epochs=np.int32(2)).status == "completed"
    assert (type(trainer.run.seed), type(trainer.run.progress.max_epochs)) == (int, int)
