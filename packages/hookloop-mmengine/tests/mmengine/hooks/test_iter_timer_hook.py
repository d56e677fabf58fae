"""Times of iterations in the message hub."""

import pytest

from hookloop_mmengine.hooks import Hook, IterTimerHook, iter_timer_hook


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves one second each time it is read."""
    times = iter(range(10_000))
    monkeypatch.setattr(iter_timer_hook, "perf_counter", lambda: next(times))


def test_times_of_each_mode(run, clock):
    runner = run(limit=1)
    runner.test()
    hub = runner.message_hub
    for mode in ("train", "val", "test"):
        # Each iteration reads the clock twice: before the forward and after it.
        assert hub.get_scalar(f"{mode}/data_time").data[0].tolist() == [1, 1]
        assert hub.get_scalar(f"{mode}/time").data[0].tolist() == [2, 2]


def test_the_remaining_time_of_a_training(run, clock):
    class Look(Hook):
        etas = ()

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.etas += (runner.message_hub.get_info("eta"),)

    look = Look()
    run(look, limit=2)
    assert look.etas == (6, 4, 2, 0)


def test_the_remaining_time_of_a_validation(run, clock):
    class Look(Hook):
        etas = ()

        def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.etas += (runner.message_hub.get_info("eta"),)

    look = Look()
    run(look, limit=1)
    assert look.etas == (2, 0)


def test_a_resumed_training_averages_its_own_iterations(run, clock):
    class Look(Hook):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.eta = runner.message_hub.get_info("eta")

        def before_train(self, runner):
            self.start = next(
                hook.start_iter for hook in runner.hooks if isinstance(hook, IterTimerHook)
            )

    run(limit=1)
    look = Look()
    run(look, limit=3, resume=True)
    assert look.start == 2
    assert look.eta == 0


def test_a_subclass_finds_mmengines_names(run):
    class Timer(IterTimerHook):
        def _after_iter(self, runner, batch_idx, data_batch=None, outputs=None, mode="train"):
            assert self.t > 0
            assert self.start_iter == 0
            assert self.time_sec_tot == 0
            assert self.time_sec_test_val == 0

    run(default_hooks={"timer": Timer()}, limit=1)
