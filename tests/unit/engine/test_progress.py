"""Counters, limits, and what a checkpoint keeps of them."""

import pytest

from hookloop.engine.progress import Progress


@pytest.mark.parametrize(
    ("values", "is_done"),
    [
        ({}, False),
        ({"iter": 10**9, "epoch": 10**9}, False),  # Without a limit nothing is ever reached.
        ({"iter": 4, "max_iters": 5}, False),
        ({"iter": 5, "max_iters": 5}, True),
        ({"iter": 6, "max_iters": 5}, True),  # A resume with a smaller limit.
        ({"epoch": 1, "max_epochs": 2}, False),
        ({"epoch": 2, "max_epochs": 2}, True),
        ({"iter": 3, "max_iters": 9, "epoch": 1, "max_epochs": 1}, True),
        ({"iter": 9, "max_iters": 9, "epoch": 0, "max_epochs": 1}, True),
    ],
)
def test_a_run_is_done_when_either_limit_is_reached(values, is_done):
    assert Progress(**values).is_done is is_done


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ({}, None),
        ({"max_iters": 7}, 7),
        ({"max_epochs": 3}, None),  # Nobody knows yet how long an epoch is.
        ({"max_epochs": 3, "epoch_iters": 5}, 15),
        ({"max_epochs": 3, "epoch_iters": 5, "max_iters": 7}, 7),
        ({"max_epochs": 1, "epoch_iters": 5, "max_iters": 7}, 5),
        ({"epoch_iters": 5}, None),
    ],
)
def test_the_updates_of_the_whole_run_follow_from_the_smaller_limit(values, total):
    assert Progress(**values).total_iters == total


def test_the_state_holds_the_counters_and_the_limits_stay_those_of_the_config():
    saved = Progress(7, 2, 1, 8, 3, 4, "inside", 6).state_dict()
    assert saved == {
        "iter": 7,
        "epoch": 2,
        "iter_in_epoch": 1,
        "stage": "inside",
        "validated_at": 6,
        "samples": None,
        "tokens": None,
        "split": 1,
        "left_out": (),
    }
    other = Progress(max_iters=100, max_epochs=50, epoch_iters=9)
    other.load_state_dict(saved)
    assert other.state_dict() == saved
    assert (other.max_iters, other.max_epochs, other.epoch_iters) == (100, 50, 9)


def test_a_new_run_has_validated_nothing_not_even_iteration_zero():
    assert Progress().validated_at != Progress().iter


def test_a_misspelled_counter_cannot_be_set():
    with pytest.raises(AttributeError):
        Progress().iters = 3
