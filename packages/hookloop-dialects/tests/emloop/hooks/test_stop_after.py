"""The end of the training after a limit."""

import pytest
from tests.emloop.looking import train

from hookloop_dialects.emloop.hooks import StopAfter, TrainingTerminated


def test_epochs_are_checked_after_each():
    hook = StopAfter(epochs=2)
    for epoch in (0, 1):
        hook.after_epoch(epoch_id=epoch, epoch_data={})
    for epoch in (2, 3):
        with pytest.raises(TrainingTerminated, match=f"{epoch} epochs are done"):
            hook.after_epoch(epoch_id=epoch, epoch_data={})


def test_iterations_are_batches_of_the_training_stream():
    hook = StopAfter(iterations=2, train_stream_name="learn")
    for stream in ("learn", "train", "valid"):
        hook.after_batch(stream, {})
    with pytest.raises(TrainingTerminated, match="2 iterations are done"):
        hook.after_batch("learn", {})


def test_minutes_count_from_before_training_and_over_a_resume(monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("hookloop_dialects.emloop.hooks.stop_after.monotonic", lambda: clock[0])
    hook = StopAfter(minutes=2)
    clock[0] += 500
    hook.before_training()
    clock[0] += 119
    hook.after_batch("valid", {})
    again = StopAfter(minutes=2)
    again.load_state_dict(hook.state_dict())
    again.before_training()
    clock[0] += 0.5
    again.after_epoch(epoch_id=1, epoch_data={})
    clock[0] += 1
    with pytest.raises(TrainingTerminated, match="more than 2 minutes"):
        again.after_batch("valid", {})


def test_a_limit_is_needed():
    with pytest.raises(ValueError, match="set epochs, iterations or minutes"):
        StopAfter()


def test_a_run_stops_in_the_middle_of_an_epoch(tmp_path):
    trainer = train(tmp_path, StopAfter(iterations=4), max_epochs=9)
    assert trainer.run.progress.iter == 4
    assert trainer.run.outcome.reason == "4 iterations are done"
