"""A rate that is changed at a resume takes effect, whatever schedule drives it."""

import json

import pytest
import torch
from tests.names import epoch_file
from tests.tiny import assert_same_bits, make_model, make_trainer
from torch.optim import lr_scheduler as schedulers

from hookloop.errors import ArgumentError, CheckpointError
from hookloop.hooks import SaveCheckpoint, StepSchedules, WriteMetrics
from hookloop.lr_schedule import Schedule
from hookloop.trainer.intended_changes import Resume

SCHEDULES = {
    "none": None,
    "step": lambda o: schedulers.StepLR(o, 2, 0.5),
    "cosine": lambda o: schedulers.CosineAnnealingLR(o, 12),
    "lambda": lambda o: schedulers.LambdaLR(o, lambda step: 0.9**step),
    "factor": lambda o: schedulers.MultiplicativeLR(o, lambda step: 0.9),
    "restarts": lambda o: schedulers.CosineAnnealingWarmRestarts(o, 4),
    "sequence": lambda o: schedulers.SequentialLR(
        o,
        [schedulers.LinearLR(o, 0.1, total_iters=3), schedulers.ExponentialLR(o, 0.9)],
        [3],
    ),
    "chain": lambda o: schedulers.ChainedScheduler(
        [schedulers.LinearLR(o, 0.1, total_iters=3), schedulers.ExponentialLR(o, 0.9)]
    ),
}


def train(schedule=None, lr=0.1, epochs=2, weight_decay=0.0, groups=False, **options):
    model = make_model()
    held = model.parameters()
    if groups:
        held = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": lr / 2}]
    optimizer = torch.optim.SGD(held, lr=lr, momentum=0.9, weight_decay=weight_decay)
    if schedule is not None:
        options["schedule"] = schedule(optimizer)
    trainer = make_trainer(
        model=model,
        optimizer=optimizer,
        hooks=[SaveCheckpoint("1 epoch"), StepSchedules(), WriteMetrics()],
        max_epochs=epochs,
        **options,
    )
    trainer.train()
    return trainer


def rates(trainer):
    return [group["lr"] for group in trainer.run.optimizers["default"].param_groups]


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_new_rate_is_where_the_schedule_would_be_with_it(name, groups, tmp_path):
    train(SCHEDULES[name], groups=groups, run_dir=tmp_path / "run")
    change = Resume(tmp_path / "run", change=["optimizer.lr"])
    changed = train(SCHEDULES[name], lr=0.01, epochs=3, groups=groups, resume=change)
    whole = train(SCHEDULES[name], lr=0.01, epochs=3, groups=groups, run_dir=tmp_path / "whole")
    assert rates(changed) == pytest.approx(rates(whole), rel=1e-9)


def test_on_a_plateau_the_factor_so_far_is_kept(tmp_path):
    def schedule(optimizer):
        plateau = schedulers.ReduceLROnPlateau(optimizer, factor=0.5, patience=1000)
        return Schedule(plateau, metric="val/loss")

    data = {"val_data": [(torch.ones(4, 4), torch.ones(4, 1))], "run_dir": tmp_path}
    first = train(schedule, **data)
    first.run.optimizers["default"].param_groups[0]["lr"] *= 0.5
    first.train(max_epochs=3)
    resume = Resume(True, change="optimizer.lr")
    changed = train(schedule, lr=0.01, epochs=4, resume=resume, **data)
    assert rates(changed) == pytest.approx([0.005])


def test_a_peak_that_a_schedule_keeps_in_the_groups_is_changed_too(tmp_path):
    def cycle(peak):
        return lambda optimizer: schedulers.OneCycleLR(optimizer, max_lr=peak, total_steps=12)

    train(cycle(0.1), run_dir=tmp_path / "run", setup={"config": {"schedule": {"max_lr": 0.1}}})
    changed = train(
        cycle(0.02),
        epochs=3,
        resume=Resume(tmp_path / "run", change="schedule.max_lr"),
        setup={"config": {"schedule": {"max_lr": 0.02}}},
    )
    whole = train(cycle(0.02), epochs=3, run_dir=tmp_path / "whole")
    assert rates(changed) == pytest.approx(rates(whole))


def test_a_schedule_is_changed_as_a_whole_where_there_is_no_config(tmp_path):
    def steps(size):
        return lambda optimizer: schedulers.StepLR(optimizer, size, 0.5)

    train(steps(2), run_dir=tmp_path)
    with pytest.raises(CheckpointError, match="no 'schedule.size'.*'schedule.step_size'"):
        train(steps(3), epochs=3, run_dir=tmp_path, resume=Resume(True, change="schedule.size"))
    changed = train(steps(3), epochs=3, run_dir=tmp_path, resume=Resume(True, change="schedule"))
    assert [one["key"] for one in changed.run._internals.changes] == ["schedule.step_size"]
    assert rates(changed) == pytest.approx([0.1 * 0.5**3])


def test_other_settings_take_effect(tmp_path):
    train(run_dir=tmp_path)
    resume = Resume(True, change=["optimizer.weight_decay"])
    changed = train(run_dir=tmp_path, weight_decay=0.1, epochs=3, resume=resume)
    assert changed.run.optimizers["default"].param_groups[0]["weight_decay"] == 0.1


def test_a_run_with_a_change_is_resumed_exactly(tmp_path):
    cosine = SCHEDULES["cosine"]
    for name in ("whole", "cut"):
        train(cosine, run_dir=tmp_path / name)
    change = {"lr": 0.01, "schedule": cosine}
    whole = train(**change, epochs=4, resume=Resume(tmp_path / "whole", change="optimizer.lr"))
    train(**change, epochs=3, resume=Resume(tmp_path / "cut", change="optimizer.lr"))
    # The change is done, so that saying it again changes nothing, and neither does leaving it out.
    cut = train(**change, epochs=4, resume=tmp_path / "cut")
    assert_same_bits(whole.run.model, cut.run.model)
    assert cut.run._internals.changes == whole.run._internals.changes


def test_a_change_is_in_the_log_the_summary_and_later_checkpoints(tmp_path):
    train(run_dir=tmp_path)
    resume = Resume(True, change="optimizer.lr")
    train(lr=0.01, epochs=3, run_dir=tmp_path, resume=resume)
    train(lr=0.01, epochs=4, run_dir=tmp_path, resume=resume)
    expected = [{"iter": 6, "key": "optimizer.lr", "old": 0.1, "new": 0.01, "how": "resumed"}]
    assert json.loads((tmp_path / "summary.json").read_text())["changes"] == expected
    assert torch.load(tmp_path / epoch_file(4), weights_only=True)["changes"] == expected
    log = (tmp_path / "run.log").read_text()
    assert log.count("changed on purpose after iteration 6: optimizer.lr: 0.1 -> 0.01") == 1


def test_several_optimizers_are_told_apart(tmp_path):
    def make(lr, **options):
        model = make_model()
        optimizers = {
            "a": torch.optim.SGD(model[0].parameters(), lr=0.1),
            "b": torch.optim.SGD(model[2].parameters(), lr=lr),
        }

        def loss(run, batch):
            return (run.model(batch[0]) - batch[1]).square().mean()

        trainer = make_trainer(
            model=model,
            optimizer=optimizers,
            step={"a": loss, "b": loss},
            run_dir=tmp_path,
            hooks=[SaveCheckpoint("1 epoch")],
            **options,
        )
        trainer.train()
        return [optimizers[name].param_groups[0]["lr"] for name in "ab"]

    make(0.2)
    assert make(0.3, resume=Resume(True, change="optimizer.b.lr"), max_epochs=2) == [0.1, 0.3]


@pytest.mark.parametrize("path", [None, False, 3])
def test_a_resume_needs_something_to_resume(path):
    with pytest.raises(ArgumentError, match="run directory or a checkpoint"):
        Resume(path, change="optimizer.lr")
