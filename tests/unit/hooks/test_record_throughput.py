import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import RecordThroughput
from hookloop.hooks.measuring import record_throughput as module


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


def tokens(length=5):
    ids = torch.arange(12 * length).reshape(12, length) % 7
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(ids, ids.float().sum(1, keepdim=True)), batch_size=4
    )


class Embed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(7, 8)
        self.out = torch.nn.Linear(8, 1)

    def forward(self, ids):
        return self.out(self.table(ids).mean(1))


@pytest.mark.parametrize("count", ["tokens", lambda batch: (batch[0] >= 0).sum()])
def test_tokens_are_counted(count, clock, tmp_path):
    hooks = [advance(clock, "after_update", 2.0), RecordThroughput(every=3, count=count)]
    trainer = make_trainer(model=Embed(), train_data=tokens(), hooks=hooks, run_dir=tmp_path)
    trainer.train()
    assert trainer.run.metrics.latest("train/tokens_per_second") == 60 / 6


def test_a_batch_without_tokens_is_named(tmp_path):
    trainer = make_trainer(hooks=[RecordThroughput(count="tokens")], run_dir=tmp_path)
    with pytest.raises(HookError, match="give a function of the batch"):
        trainer.train()


def test_operations_of_forward_and_backward_and_their_share_of_the_peak(clock, tmp_path):
    hooks = [
        advance(clock, "after_update", 2.0),
        RecordThroughput(every=2, flops="auto", peak=1000.0),
    ]
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path, max_epochs=2)
    trainer.train()
    # Two layers, 4 x 8 and 8 x 1: two operations per weight and sample in the forward pass, twice
    # as many in the backward pass, except for the gradient of the first layer's input.
    per_sample = 2 * (32 + 8) + 2 * 2 * (32 + 8) - 2 * 32
    rate = trainer.run.metrics.latest("train/flops_per_second")
    assert rate == pytest.approx(per_sample * 4 / 2)
    assert trainer.run.metrics.latest("train/mfu") == pytest.approx(rate / 1000)


def test_an_unknown_peak_is_said_once(caplog, tmp_path):
    trainer = make_trainer(
        hooks=[RecordThroughput(every=1, flops=100.0)], max_epochs=2, run_dir=tmp_path
    )
    trainer.train()
    assert "train/flops_per_second" in trainer.run.metrics
    assert "train/mfu" not in trainer.run.metrics
    assert caplog.text.count("give peak=") == 1


def test_a_failed_first_update_leaves_nothing_behind(tmp_path):
    def step(run, batch):
        raise ZeroDivisionError

    trainer = make_trainer(step=step, hooks=[RecordThroughput(flops="auto")], run_dir=tmp_path)
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


@pytest.mark.slow
def test_counting_changes_nothing_and_survives_a_resume():
    from hookloop.testing import assert_hook_contract

    assert_hook_contract(lambda: RecordThroughput(every=2, flops="auto", peak=1e9))


@pytest.mark.parametrize(
    "options", [{"count": "words"}, {"flops": "many"}, {"flops": 0.0}, {"peak": -1.0}]
)
def test_wrong_arguments_are_rejected(options):
    with pytest.raises((HookError, TypeError)):
        RecordThroughput(**options)
