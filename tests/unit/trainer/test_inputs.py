"""What the user brought: checked before training, and brought to one form."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop import Hook, HookloopError, Schedule
from hookloop.data.stream import Stream
from hookloop.engine.progress import Progress
from hookloop.errors import CheckpointError, DataError, HookError, ModelError
from hookloop.hooks import StepSchedules, StopAfter, StopOnNaN, StopOnPlateau
from hookloop.trainer.inputs import (
    make_progress,
    named_optimizers,
    named_schedules,
    produced_names,
    set_limits,
)
from hookloop.trainer.planning import _epoch_means


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
        ({"val_every": "sometimes"}, HookloopError, "is not an interval"),
        ({"step": lambda run, batch: None, "loss": lambda o, t: o}, ModelError, "both given"),
        ({"step": {"a": lambda run, batch: None}}, ModelError, "step= names a"),
        ({"resume": True}, CheckpointError, "needs run_dir"),
        ({"setup.load_from": "nowhere.pth"}, CheckpointError, "nowhere.pth"),
    ],
)
def test_what_cannot_be_trained_is_rejected_before_training(options, kind, message):
    with pytest.raises(kind, match=message):
        make_trainer(**options).check()


def test_the_default_hooks_do_not_pass_for_an_end():
    with pytest.raises(ModelError, match="StopAfter.*ends_training = True"):
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


def test_a_schedule_that_nobody_steps_is_rejected():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    with pytest.raises(HookError, match="no hook steps it"):
        make_trainer(model=model, optimizer=optimizer, schedule=schedule).check()


def test_a_training_that_has_nothing_left_to_do_is_rejected():
    trainer = make_trainer(max_epochs=2)
    trainer.train()
    for again in ({}, {"max_epochs": 2}, {"max_epochs": 1}):
        with pytest.raises(ModelError, match=r"train\(max_epochs=...\)"):
            trainer.train(**again)
    with pytest.raises(ModelError, match="max_epochs='3'"):
        trainer.train(max_epochs="3")
    assert trainer.run.progress.max_epochs == 2
    trainer.train(max_iters=7, max_epochs=9)
    with pytest.raises(ModelError, match="max_iters=7"):
        trainer.train()


def test_a_model_without_trainable_parameters_is_rejected():
    model = make_model()
    for parameter in model.parameters():
        parameter.requires_grad = False
    with pytest.raises(ModelError, match="no trainable parameters"):
        make_trainer(model=model)


def test_an_optimizer_of_another_model_is_rejected():
    other = torch.optim.SGD(make_model().parameters(), lr=0.1)
    with pytest.raises(ModelError, match="holds no trainable parameter of this model"):
        make_trainer(optimizer=other)


def test_drop_last_that_drops_everything_is_explained():
    with pytest.raises(DataError, match="3 samples are fewer than one batch of 4"):
        make_trainer(train_data=make_data(3, drop_last=True))


def test_whole_numbers_of_numpy_are_taken(tmp_path: Path) -> None:
    trainer = make_trainer(
        max_epochs=np.int64(1), seed=np.int64(3), run_dir=tmp_path / "run", default_hooks=None
    )
    assert trainer.train().status == "completed"
    assert trainer.train(max_epochs=np.int32(2)).status == "completed"
    assert (type(trainer.run._internals.seed), type(trainer.run.progress.max_epochs)) == (int, int)


# --- one form ------------------------------------------------------------------------------------


def source(batches):
    return Stream([(torch.ones(1, 4), torch.ones(1, 1))] * batches, "train_data")


def test_optimizers_are_brought_to_a_mapping():
    model = make_model()
    one, two = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
    assert named_optimizers(None, model) == {}
    assert named_optimizers(one, model) == {"default": one}
    given = {"a": one, "b": two}
    found = named_optimizers(given, model)
    assert found == given and found is not given


def test_an_optimizer_of_a_part_of_the_model_is_accepted():
    model = make_model()
    model[0].requires_grad_(False)
    part = torch.optim.SGD(model[2].parameters(), lr=0.1)
    assert named_optimizers(part, model) == {"default": part}
    with pytest.raises(ModelError, match="no trainable parameter of this model"):
        named_optimizers(torch.optim.SGD(model[0].parameters(), lr=0.1), model)


@pytest.mark.parametrize(
    ("batches", "accumulate", "epoch_iters", "expected"),
    [(7, 1, None, 7), (7, 2, None, 4), (8, 2, None, 4), (7, 9, None, 1), (7, 2, 5, 5)],
)
def test_the_iterations_of_an_epoch_are_known_from_the_data(
    batches, accumulate, epoch_iters, expected
):
    progress = make_progress(source(batches), 3, None, epoch_iters, accumulate)
    assert progress.epoch_iters == expected
    assert progress.total_iters == 3 * expected


def test_without_data_or_with_data_of_no_length_they_are_not():
    assert make_progress(None, 3, None, None, 1).epoch_iters is None
    stream = Stream(iter([1]), "train_data")
    assert make_progress(stream, 1, None, None, 1).total_iters is None


@pytest.mark.parametrize("wrong", [0, -1, 2.0, True, "3"])
@pytest.mark.parametrize("name", ["max_epochs", "max_iters", "epoch_iters", "accumulate"])
def test_a_count_is_a_whole_number_above_zero(name, wrong):
    given = {"max_epochs": None, "max_iters": None, "epoch_iters": None, "accumulate": 1}
    with pytest.raises(ModelError, match=f"^{name}"):
        make_progress(source(3), **(given | {name: wrong}))


def test_new_limits_replace_the_old_ones_and_none_keeps_them():
    progress = Progress(4, 1, max_epochs=2, max_iters=9)
    set_limits(progress, None, None)
    assert (progress.max_epochs, progress.max_iters) == (2, 9)
    set_limits(progress, 5, None)
    assert (progress.max_epochs, progress.max_iters) == (5, 9)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ((1, None), r"train\(max_epochs=...\).*above 1"),
        ((9, 4), r"train\(max_iters=...\).*above 4"),
    ],
)
def test_limits_that_are_reached_are_rejected_and_change_nothing(limits, message):
    progress = Progress(4, 1, max_epochs=2)
    with pytest.raises(ModelError, match=message):
        set_limits(progress, *limits)
    assert (progress.max_epochs, progress.max_iters) == (2, None)


# --- the names that a run will write -------------------------------------------------------------


def updates_of(**options):
    return make_trainer(**options)._updates


def test_the_names_follow_from_updates_metrics_and_streams():
    val = {"val": {"": source(1)}, "test": {"a": source(1), "b": source(1)}}
    names = produced_names(updates_of(clip_norm=1.0), {"accuracy": lambda o, t: 1.0}, val)
    assert names == {
        *("train/loss", "train/grad_norm", "val/loss", "val/accuracy"),
        *("test/a/loss", "test/a/accuracy", "test/b/loss", "test/b/accuracy"),
    }


def test_a_step_may_write_names_that_only_running_it_shows():
    names = produced_names(updates_of(step=lambda run, batch: None), {}, {"val": {"": source(1)}})
    assert names == {"train/loss", "train/*", "val/loss", "val/*"}


def test_what_is_recorded_in_iterations_has_a_mean_over_the_epoch():
    assert _epoch_means(["train/loss", "train/*", "val/loss", "knn"]) == {
        "train_epoch/loss", "train_epoch/*",
    }  # fmt: skip


def test_every_name_that_is_announced_is_written():
    trainer = make_trainer(
        clip_norm=1.0,
        val_data={"a": make_data(4), "b": make_data(8)},
        metrics={"error": lambda output, targets: (output - targets).abs().mean()},
    )
    trainer.train()
    streams = {"val": trainer.run.val_data}
    names = produced_names(trainer._updates, trainer.run._internals.meters, streams)
    assert names | _epoch_means(names) == set(trainer.run.metrics.names())


def test_schedules_are_given_alone_or_by_name_with_or_without_an_interval():
    assert named_schedules(None) == {}
    optimizer = torch.optim.SGD(make_model().parameters(), lr=0.1)
    scheduler, other = (torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5) for _ in range(2))
    schedule = Schedule(other, "1 epoch")
    alone = named_schedules(scheduler)
    assert list(alone) == ["default"] and alone["default"].scheduler is scheduler
    both = named_schedules({"generator": schedule, "critic": scheduler})
    assert both["generator"] is schedule and both["critic"].every.unit == "iters"


@pytest.mark.parametrize("rate", [-0.1, float("nan")])
def test_a_learning_rate_below_0_is_rejected(rate):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.param_groups[0]["lr"] = rate  # torch checks only what the class is given.
    with pytest.raises(ModelError, match="learning rate"):
        named_optimizers(optimizer, model)


def test_validation_data_that_the_first_validation_uses_up_is_rejected_before_training():
    trainer = make_trainer(val_data=iter(make_data()), max_epochs=2)
    with pytest.raises(DataError, match="read only once"):
        trainer.train()
    assert trainer.run.progress.iter == 0
    assert make_trainer(val_data=iter(make_data()), max_epochs=1).train().status == "completed"


def test_data_that_was_used_up_is_not_called_empty():
    used = iter(make_data())
    list(used)
    with pytest.raises(DataError, match="was used up before this run"):
        make_trainer(val_data=used, max_epochs=1).train()
    again = make_trainer(val_data=iter(make_data()), max_epochs=1)
    again.train()
    with pytest.raises(DataError, match="used up by the pass before"):
        again.validate()
