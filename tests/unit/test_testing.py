"""The public test kit: a hook that breaks a rule is found, and the message says which."""

import pytest
import torch

from hookloop import Hook, Point
from hookloop.testing import (
    RecordCalls,
    assert_hook_contract,
    assert_only_observes,
    assert_resumes_exactly,
    assert_same_bits,
    tiny_trainer,
)


class Count(Hook):
    """A hook as it should be."""

    def __init__(self):
        self.count = 0

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]

    def after_train_iter(self, run):
        self.count += 1
        run.metrics.put("count", self.count)


class Forget(Count):
    """It loses its count at a resume."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Ignore(Count):
    def load_state_dict(self, state):
        pass


class KeepAnObject(Count):
    def state_dict(self):
        return {"count": self.count, "self": object.__new__(Hook)}


class Push(Hook):
    def after_update(self, run):
        with torch.no_grad():
            next(run.model.parameters()).add_(1.0)


class StopEarly(Hook):
    def after_train_iter(self, run):
        run.stop("enough")


class FailAtTheEnd(Hook):
    def after_run(self, run):
        if run.outcome.status == "failed":
            raise RuntimeError("and another problem")


class Idle(Hook):
    pass


class ListenToOwn(Hook):
    def after_sample(self, run): ...


@pytest.mark.slow
def test_a_hook_as_it_should_be_passes():
    assert_hook_contract(Count)


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        (Forget, "cut after iteration 1 and resumed ends differently: metrics.count"),
        (Ignore, "load_state_dict does not give back what state_dict returned"),
        (KeepAnObject, "return plain containers, numbers, text and tensors"),
        (Push, "Push changes the training: model.0.weight"),
        (StopEarly, "StopEarly ended the training after 1 of 6 iterations"),
        (FailAtTheEnd, "FailAtTheEnd fails itself when the run has failed"),
        (Idle, "Idle acts at no mount point"),
    ],
)
def test_a_broken_rule_is_named(hook, message):
    with pytest.raises(AssertionError, match=message):
        assert_hook_contract(hook)


def test_a_hook_may_be_there_to_change_the_training():
    assert_hook_contract(Push, changes_training=True)


@pytest.mark.slow
def test_mount_points_of_the_project_count():
    def make_trainer(*hooks, **options):
        return tiny_trainer(*hooks, setup={"points": [Point("after_sample")]}, **options)

    assert_hook_contract(ListenToOwn, make_trainer=make_trainer)


def test_data_that_cannot_be_repeated_is_found():
    generator = torch.Generator().manual_seed(1)  # Shared: no trainer begins where another did.

    def make_trainer(**options):
        def batches():
            while True:
                yield torch.randn(4, 4, generator=generator), torch.zeros(4, dtype=torch.long)

        return tiny_trainer(
            train_data=batches(), max_epochs=None, max_iters=4, data={"epoch_iters": 2}, **options
        )

    with pytest.raises(AssertionError, match="cut after iteration 1 and resumed ends differently"):
        assert_resumes_exactly(make_trainer, stop_at=[1])


def test_a_training_too_short_to_be_cut_is_rejected():
    with pytest.raises(AssertionError, match="only 6 iterations: it cannot be cut after 6"):
        assert_resumes_exactly(tiny_trainer, stop_at=[6])


def test_the_recorder_notes_every_point():
    recorder = RecordCalls()
    tiny_trainer(recorder, max_epochs=1).train()
    assert recorder.calls[0] == "before_run" and recorder.calls[-1] == "after_run"
    assert recorder.points.count("after_train_iter") == 3


def test_an_observer_is_compared_with_a_run_without_it():
    assert_only_observes(Count)
    with pytest.raises(AssertionError, match="changes the training"):
        assert_only_observes(Push)


def test_models_are_compared_bit_by_bit():
    one, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    other.load_state_dict(one.state_dict())
    assert_same_bits(one, other)
    with torch.no_grad():
        other.bias.add_(1e-3)
    with pytest.raises(AssertionError, match="model.bias.*1.*1 numbers"):
        assert_same_bits(one, other)
