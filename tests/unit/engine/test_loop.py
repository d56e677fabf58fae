import pytest
import torch
from tests.tiny import (
    Negate,
    Record,
    assert_same_bits,
    make_data,
    make_model,
    make_trainer,
    negated,
    record,
)
from torch.nn import functional

from hookloop.engine.hook import Hook
from hookloop.engine.points import POINTS
from hookloop.engine.run import Run
from hookloop.errors import DataError, HookError

# The table has the points within an update in the order in which they fire.
WITHIN = [point.name for point in POINTS if point.within]
ITER = ["before_train_iter", *WITHIN, "after_train_iter"]
FORWARD = WITHIN[: WITHIN.index("after_loss") + 1]
VAL_ITER = ["before_val_iter", *FORWARD, "after_val_iter"]
VAL = ["before_val", "before_val_epoch", *VAL_ITER, "after_val_epoch", "after_val"]


def points_of(**options: object) -> list[str]:
    hook = Record()
    make_trainer(hooks=[hook], **options).train()
    return hook.points


def test_points_of_a_run_by_epochs(tmp_path):
    epoch = [
        "before_epoch",
        "before_train_epoch",
        *ITER * 3,
        "after_train_epoch",
        *VAL,
        "after_epoch",
        "after_epoch_profile",
    ]
    assert points_of(max_epochs=2, val_data=make_data(4), run_dir=tmp_path) == [
        "before_run",
        "before_train",
        *epoch * 2,
        "after_train",
        "after_run",
    ]


def test_points_of_a_run_by_iterations(tmp_path):
    points = points_of(max_iters=4, val_every=2, val_data=make_data(4), run_dir=tmp_path)
    assert points == [
        "before_run",
        "before_train",
        "before_epoch",
        "before_train_epoch",
        *ITER * 2,
        *VAL,
        *ITER,
        "after_train_epoch",
        "after_epoch",
        "after_epoch_profile",
        "before_epoch",
        "before_train_epoch",
        *ITER,
        *VAL,
        "after_train",  # the second epoch was cut short: it has no end
        "after_run",
    ]


def test_microbatches_fire_their_points_and_share_one_update(tmp_path):
    points = points_of(accumulate=2, max_epochs=1, run_dir=tmp_path)
    assert points.count("after_backward") == 3
    assert points.count("after_train_iter") == 2  # three batches: one group of two, one of one


def test_counters_count_what_is_completed(tmp_path):
    hook, calls = record(
        ["before_train_iter", "after_update", "after_train_iter", "after_train_epoch", "after_val"],
        lambda run: (run.progress.iter, run.progress.epoch, run.progress.iter_in_epoch),
    )
    make_trainer(hooks=[hook], val_data=make_data(4), run_dir=tmp_path).train()
    assert calls[:3] == [
        ("before_train_iter", (0, 0, 0)),
        ("after_update", (0, 0, 0)),
        ("after_train_iter", (1, 0, 1)),
    ]
    assert calls[-2:] == [("after_train_epoch", (3, 1, 3)), ("after_val", (3, 1, 3))]


def hand_written(epochs: int, accumulate: int, clip: float | None = None) -> torch.nn.Module:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(7)
    for _ in range(epochs):
        batches = list(make_data(14, shuffle=True))
        for start in range(0, len(batches), accumulate):
            group = batches[start : start + accumulate]
            optimizer.zero_grad()
            for inputs, targets in group:
                loss = torch.nn.functional.mse_loss(model(inputs), targets)
                (loss / len(group) if accumulate > 1 else loss).backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
    return model


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("clip", [None, 0.1])
def test_result_equals_the_hand_written_loop_bit_for_bit(accumulate, clip):
    model = make_model()
    make_trainer(
        model=model,
        train_data=make_data(14, shuffle=True),
        max_epochs=3,
        accumulate=accumulate,
        clip_norm=clip,
        seed=7,
    ).train()
    assert_same_bits(model, hand_written(3, accumulate, clip))


def test_validation_on_request_comes_after_the_iteration(tmp_path):
    class Ask(Hook):
        def after_update(self, run: Run) -> None:
            if run.progress.iter == 1:
                run.validate()

    seen, calls = record(["before_val", "after_train_iter"], lambda run: run.progress.iter)
    make_trainer(hooks=[Ask(), seen], val_data=make_data(4), max_iters=3, run_dir=tmp_path).train()
    assert calls[:3] == [("after_train_iter", 1), ("after_train_iter", 2), ("before_val", 2)]


def test_epochs_of_a_fixed_size_continue_across_their_borders(tmp_path):
    hook, calls = record(["after_train_iter"], lambda run: float(run.batch[0].sum()))
    make_trainer(hooks=[hook], data={"epoch_iters": 2}, max_epochs=3, run_dir=tmp_path).train()
    sums = [float(batch[0].sum()) for batch in make_data()]
    assert [note for _, note in calls] == sums * 2


def test_data_without_a_length_trains(tmp_path):
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter([(torch.ones(4), torch.ones(1))] * 10)

    loader = torch.utils.data.DataLoader(Stream(), batch_size=4)
    trainer = make_trainer(train_data=loader, max_epochs=2)
    assert trainer.run.progress.total_iters is None
    trainer.train()
    assert (trainer.run.progress.iter, trainer.run.progress.total_iters) == (6, 6)


def test_a_generator_ends_the_training_when_it_ends():
    trainer = make_trainer(train_data=(batch for batch in make_data()), max_iters=10)
    outcome = trainer.train()
    assert (outcome.status, outcome.reason) == ("stopped", "train_data ended after 3 iterations")


def test_model_is_in_the_right_mode(tmp_path):
    hook, calls = record(
        ["before_train_iter", "before_val_iter", "after_epoch"], lambda run: run.model.training
    )
    make_trainer(hooks=[hook], val_data=make_data(4), max_epochs=2, run_dir=tmp_path).train()
    assert all(note == (point != "before_val_iter") for point, note in calls)


def test_an_iterable_that_gives_nothing_is_rejected():
    class Nothing:
        def __iter__(self):
            return iter(())

    with pytest.raises(DataError, match="train_data is empty"):
        make_trainer(train_data=Nothing()).train()


def test_a_stop_before_the_first_batch_of_an_epoch_trains_nothing():
    hook, _ = record(["before_train_epoch"], lambda run: run.stop("enough"))
    trainer = make_trainer(hooks=[hook])
    outcome = trainer.train()
    assert (outcome.status, outcome.reason) == ("stopped", "enough")
    assert trainer.run.progress.iter == 0


@pytest.mark.parametrize("own_loop", [False, True])
def test_a_batch_replaced_before_an_iteration_is_the_one_trained_on(own_loop, tmp_path):
    expected = make_trainer(train_data=negated(make_data()))
    expected.train()
    trainer = make_trainer(hooks=[Negate("before_train_iter")], run_dir=tmp_path)
    run = trainer.run
    if own_loop:
        with trainer.loop() as batches:
            for inputs, targets in batches:
                run.optimizer.zero_grad()
                functional.mse_loss(run.model(inputs), targets).backward()
                run.optimizer.step()
    else:
        trainer.train()
    assert_same_bits(run.model, expected.run.model)


def test_one_replaced_for_several_microbatches_is_rejected(tmp_path):
    hooks = [Negate("before_train_iter")]
    with pytest.raises(HookError, match="before_forward"):
        make_trainer(hooks=hooks, accumulate=3, run_dir=tmp_path).train()


def test_calls_that_a_thread_asks_for_are_made_between_two_iterations():
    made = []

    class Ask(Hook):
        def after_forward(self, run):
            if run.progress.iter == 1:
                run._internals.asked.append(lambda run: made.append((run.progress.iter, run.phase)))
                run._internals.asked.append(lambda run: setattr(run.progress, "max_iters", 4))
                run._internals.requests.any = True  # As a thread does, at any time.

    trainer = make_trainer(hooks=[Ask()], max_iters=100)
    trainer.train()
    assert made == [(2, "train")]
    assert trainer.run.progress.iter == 4  # The limit counts in the middle of an epoch, too.
