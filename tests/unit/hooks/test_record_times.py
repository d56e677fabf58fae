import pytest
from tests.tiny import make_data, make_trainer

from hookloop.engine.hook import Hook
from hookloop.hooks import RecordTimes
from hookloop.hooks.measuring import record_times as module


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(module, "perf_counter", lambda: Clock.now)
    return Clock


class Slow:
    """Data that takes one second more for each batch of an epoch."""

    def __init__(self, clock, batches=3):
        self.clock = clock
        self.batches = list(make_data(4 * batches))

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for seconds, batch in enumerate(self.batches, 1):
            self.clock.now += seconds
            yield batch


def advance(clock, point, seconds, priority=0):
    def method(self, run, *args):
        clock.now += seconds

    return type("Advance", (Hook,), {point: method, "priority": priority})().named(point)


def times(trainer):
    return [
        list(trainer.run.metrics.series(f"train/{name}_time").recent) for name in ("data", "iter")
    ]


def test_the_wait_for_data_is_a_part_of_the_iteration(clock, tmp_path):
    hooks = [RecordTimes(), advance(clock, "after_update", 10)]
    trainer = make_trainer(train_data=Slow(clock), hooks=hooks, run_dir=tmp_path)
    trainer.train()
    assert times(trainer) == [[1, 2, 3], [11, 12, 13]]


def test_hooks_before_and_after_it_count(clock, tmp_path):
    # The later hook's time belongs to the next iteration, and that of the last to none.
    hooks = [
        advance(clock, "after_train_iter", 5),
        RecordTimes(),
        advance(clock, "after_train_iter", 30, priority=100).named("late"),
    ]
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path)
    trainer.train()
    assert times(trainer) == [[0, 30, 30], [5, 35, 35]]


def test_validations_do_not_count(clock, tmp_path):
    hooks = [RecordTimes(), advance(clock, "before_val_iter", 1000)]
    options = {"val_data": make_data(8), "val_every": 1, "max_epochs": 2}
    trainer = make_trainer(train_data=Slow(clock, 2), hooks=hooks, run_dir=tmp_path, **options)
    trainer.train()
    assert times(trainer) == [[1, 2, 1, 2], [1, 2, 1, 2]]


def test_the_time_between_epochs_does_not_count(clock, tmp_path):
    hooks = [RecordTimes(), advance(clock, "after_epoch", 500)]
    trainer = make_trainer(train_data=Slow(clock, 1), hooks=hooks, max_epochs=3, run_dir=tmp_path)
    trainer.train()
    assert times(trainer) == [[1, 1, 1], [1, 1, 1]]
