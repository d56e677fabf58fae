import pytest
from tests.tiny import make_trainer

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, StopAfter
from hookloop.hooks import _stopwatch as module


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves by a minute with every iteration."""

    class Clock(Hook):
        now = 0.0
        priority = 0

        def after_update(self, run):
            Clock.now += 60

    monkeypatch.setattr(module, "monotonic", lambda: Clock.now)
    return Clock


def test_it_stops_after_epochs_or_iterations_whichever_comes_first(tmp_path):
    for options, iters, reason in (
        ({"epochs": 2}, 6, "2 epochs are done"),
        ({"iterations": 4}, 4, "4 iterations are done"),
        ({"epochs": 1, "iterations": 4}, 3, "1 epoch is done"),
    ):
        trainer = make_trainer(
            hooks=[StopAfter(**options)], max_epochs=9, run_dir=tmp_path / str(iters)
        )
        outcome = trainer.train()
        assert (outcome.status, outcome.reason) == ("stopped", reason)
        assert trainer.run.progress.iter == iters


@pytest.mark.parametrize(("options", "iters"), [({"epochs": 2}, 6), ({"iterations": 4}, 4)])
def test_a_run_that_it_ended_is_over_when_it_is_resumed(tmp_path, options, iters):
    def trainer(**further):
        hooks = [StopAfter(**options), SaveCheckpoint()]
        return make_trainer(hooks=hooks, max_epochs=9, run_dir=tmp_path, **further)

    trainer().train()
    resumed = trainer(resume=True)
    assert resumed.train().status == "stopped"
    assert resumed.run.progress.iter == iters


def test_it_is_enough_of_a_limit_for_a_run(tmp_path):
    trainer = make_trainer(hooks=[StopAfter(iterations=5)], max_epochs=None, run_dir=tmp_path)
    trainer.train()
    assert trainer.run.progress.iter == 5


def test_it_stops_after_minutes_over_all_parts_of_a_run(clock, tmp_path):
    def trainer(max_epochs, **options):
        hooks = [clock(), StopAfter(minutes=5), SaveCheckpoint()]
        return make_trainer(hooks=hooks, max_epochs=max_epochs, run_dir=tmp_path, **options)

    assert trainer(1).train().status == "completed"
    clock.now += 1000 * 60  # The pause does not count.
    resumed = trainer(9, resume=True)
    assert resumed.train().reason == "5 minutes have passed"
    assert resumed.run.progress.iter == 5


def test_a_second_call_of_train_does_not_forget_the_minutes(clock, tmp_path):
    trainer = make_trainer(hooks=[clock(), StopAfter(minutes=5)], max_epochs=3, run_dir=tmp_path)
    trainer.on("after_train_epoch")(
        lambda run: run.stop("for a while") if run.progress.epoch == 1 else None
    )
    assert trainer.train().reason == "for a while"
    clock.now += 1000 * 60
    assert trainer.train().reason == "5 minutes have passed"
    assert trainer.run.progress.iter == 5


@pytest.mark.parametrize("arguments", [{}, {"epochs": 0}, {"minutes": -1}])
def test_wrong_arguments_are_rejected(arguments):
    with pytest.raises(HookError):
        StopAfter(**arguments)
