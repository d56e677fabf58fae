"""The current epoch of emloop."""

import pytest
import torch
from tests.tiny import make_trainer

from hookloop_dialects.emloop.cycle import Cycle, stream_name
from hookloop_dialects.emloop.types import TrainingTerminated


@pytest.mark.parametrize(
    ("name", "phase", "expected"),
    [
        ("val", "valid", "valid"),
        ("", "valid", "valid"),
        ("", "test", "test"),
        ("noisy", "valid", "noisy"),
        ("train", "valid", "train"),
    ],
)
def test_names_of_streams(name, phase, expected):
    assert stream_name(name, phase) == expected


@pytest.mark.parametrize(
    ("read", "listed"),
    [(["train", "valid"], ["train", "valid"]), (["a", "b", "train", "a"], ["train", "a", "b"])],
)
def test_the_epochs_data_is_empty_with_the_training_stream_first(read, listed):
    cycle = Cycle()
    cycle.open()
    for stream in read:
        cycle.enter(stream)
    cycle.close()
    assert cycle.stream == read[-1]
    assert dict(cycle.epoch_data) == {stream: {} for stream in listed}
    assert list(cycle.epoch_data) == listed


def test_opening_forgets_the_epoch_before():
    cycle = Cycle()
    cycle.enter("train")
    cycle.mark_epoch_hooks(1.0)
    cycle.open()
    cycle.close()
    assert not cycle.epoch_data and not cycle.profile


def test_batches_are_made_once_and_again_after_the_next_reading():
    cycle, batch = Cycle(), (torch.ones(2, 1), torch.ones(2))
    cycle.computed.append((batch, None, torch.tensor(1.0)))
    (data,) = cycle.batches
    assert cycle.batches[0] is data
    cycle.mark_read("train")
    assert cycle.batches == []


def test_times_are_kept_only_if_a_hook_needs_them():
    cycle = Cycle()
    cycle.open()
    cycle.mark_read("train")
    cycle.mark_computed("train")
    assert cycle.profile == {} and cycle.streams == ["train"]


def test_times_are_listed_by_activity_and_stream():
    cycle = Cycle()
    cycle.is_timed = True
    cycle.open()
    for seconds in (0.25, 0.5):
        cycle.mark_read("train")
        cycle.mark_computed("train")
        cycle.mark_hooks(seconds)
        cycle.mark_hooks(seconds)
    cycle.flush()
    cycle.flush()  # Nothing new: no entry.
    cycle.mark_epoch_hooks(1.0)
    cycle.mark_epoch_hooks(2.0)
    assert cycle.profile["after_batch_hooks_train"] == [0.5, 1.0]
    assert cycle.profile["after_epoch_hooks"] == [3.0]
    assert len(cycle.profile["read_batch_train"]) == len(cycle.profile["eval_batch_train"]) == 2
    assert min(cycle.profile["read_batch_train"]) >= 0


def test_only_a_termination_stops_the_run():
    run = make_trainer().run
    with pytest.raises(KeyError, match="mine"):
        Cycle().end(run, KeyError("mine"))
    assert run._internals.requests.stop is None
    Cycle().end(run, TrainingTerminated())
    Cycle().end(run, TrainingTerminated("later"))
    assert (
        run._internals.requests.stop.reason == "TrainingTerminated"
    )  # The first, and its name if empty.
