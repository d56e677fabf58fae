import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop.core.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import RecordThroughput
from hookloop.hooks import record_throughput as module


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""

    class Clock:
        now = 0.0

    monkeypatch.setattr(module, "perf_counter", lambda: Clock.now)
    return Clock


def advance(clock, point, seconds):
    def method(self, run, *args):
        clock.now += seconds

    return type("Advance", (Hook,), {point: method, "priority": 0})()


def rates(trainer):
    return list(trainer.run.metrics.series("train/samples_per_second").recent)


def test_samples_are_counted_over_the_interval(clock, tmp_path):
    trainer = make_trainer(
        train_data=make_data(14),  # batches of 4, 4, 4, 2
        hooks=[advance(clock, "after_update", 2.0), RecordThroughput(every=2)],
        run_dir=tmp_path,
    )
    trainer.train()
    assert rates(trainer) == [8 / 4, 6 / 4]
    assert trainer.run.metrics.latest("train/time_per_sample") == pytest.approx(4 / 6)


def test_what_is_left_at_an_epochs_end_is_recorded(clock, tmp_path):
    hooks = [advance(clock, "after_update", 1.0), RecordThroughput(every=2)]
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path)
    trainer.train()
    assert rates(trainer) == [4.0, 4.0]


def test_validations_do_not_count(clock, tmp_path):
    hooks = [
        advance(clock, "after_update", 1.0),
        advance(clock, "before_val_iter", 50.0).named("slow"),
        RecordThroughput(every=3),
    ]
    trainer = make_trainer(hooks=hooks, val_data=make_data(4), val_every=1, run_dir=tmp_path)
    trainer.train()
    assert rates(trainer) == [4.0]


class Copy(Hook):
    """Replaces every batch, for each turn again."""

    def before_forward(self, run):
        run.batch = [part.clone() for part in run.batch]


def test_microbatches_count_and_turns_do_not(clock, tmp_path):
    model = make_model()

    def step(run, batch):
        return (run.model(batch[0]) - batch[1]).square().mean()

    trainer = make_trainer(
        model=model,
        optimizer={n: torch.optim.SGD(model.parameters(), lr=0.01) for n in "ab"},
        step={"a": step, "b": step},
        accumulate=3,
        hooks=[advance(clock, "after_train_iter", 1.0), Copy(), RecordThroughput(every=1)],
        run_dir=tmp_path,
    )
    trainer.train()
    assert rates(trainer) == [12.0]


def test_an_interval_in_epochs_is_rejected():
    with pytest.raises(HookError, match="iterations or time"):
        RecordThroughput(every="1 epoch")
