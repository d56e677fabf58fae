"""MMEngine's hooks at our mount points."""

import pytest
import torch
from tests.tiny import make_data, make_trainer

from hookloop.engine.hook import Priority as Native
from hookloop.errors import HookError
from hookloop_mmengine.adapter import MMEngineAdapter, adapt, priority_of
from hookloop_mmengine.hooks import CheckpointHook, Hook
from hookloop_mmengine.logging import MessageHub
from hookloop_mmengine.runner import Priority


class Trace(Hook):
    """Writes down every call with the runner's counters and the plain arguments."""

    def __init__(self):
        self.rows = []


def _tracer(stage):
    def method(self, runner, **arguments):
        plain = {name: value for name, value in arguments.items() if isinstance(value, int)}
        self.rows.append((stage, runner.epoch, runner.iter, *plain.values()))

    return method


for _stage in Hook.stages:
    setattr(Trace, _stage, _tracer(_stage))


@pytest.fixture
def trace(tmp_path):
    def trace(hook=None, **options):
        hook = hook or Trace()
        trainer = make_trainer(
            hooks=[hook],
            train_data=make_data(samples=8),
            val_data=make_data(samples=8),
            run_dir=tmp_path / "run",
            **options,
        )
        trainer.train()
        return hook.rows

    return trace


def test_a_training_by_epochs(trace):
    assert trace(max_epochs=2) == [
        ("before_run", 0, 0),
        ("before_train", 0, 0),
        ("before_train_epoch", 0, 0),
        ("before_train_iter", 0, 0, 0),
        ("after_train_iter", 0, 0, 0),
        ("before_train_iter", 0, 1, 1),
        ("after_train_iter", 0, 1, 1),
        ("after_train_epoch", 0, 2),
        ("before_val", 1, 2),
        ("before_val_epoch", 1, 2),
        ("before_val_iter", 1, 2, 0),
        ("after_val_iter", 1, 2, 0),
        ("before_val_iter", 1, 2, 1),
        ("after_val_iter", 1, 2, 1),
        ("after_val_epoch", 1, 2),
        ("after_val", 1, 2),
        ("before_train_epoch", 1, 2),
        ("before_train_iter", 1, 2, 0),
        ("after_train_iter", 1, 2, 0),
        ("before_train_iter", 1, 3, 1),
        ("after_train_iter", 1, 3, 1),
        ("after_train_epoch", 1, 4),
        ("before_val", 2, 4),
        ("before_val_epoch", 2, 4),
        ("before_val_iter", 2, 4, 0),
        ("after_val_iter", 2, 4, 0),
        ("before_val_iter", 2, 4, 1),
        ("after_val_iter", 2, 4, 1),
        ("after_val_epoch", 2, 4),
        ("after_val", 2, 4),
        ("after_train", 2, 4),
        ("after_run", 2, 4),
    ]


def test_a_training_by_iterations_is_one_epoch(trace):
    rows = trace(max_iters=5, val_every="2 iters")
    train = [row for row in rows if "train" in row[0]]
    assert train[:2] == [("before_train", 0, 0), ("before_train_epoch", 0, 0)]
    assert [row for row in rows if row[0] == "before_train_iter"] == [
        ("before_train_iter", 0, index, index) for index in range(5)
    ]
    assert [row[0] for row in train].count("before_train_epoch") == 1
    assert ("before_val", 0, 2) in rows
    ends = [row for row in rows if row[0] in ("after_train_epoch", "after_train")]
    assert sorted(ends) == [("after_train", 0, 5), ("after_train_epoch", 0, 5)]


def test_the_arguments_of_each_method(tmp_path):
    class Arguments(Hook):
        seen = {}  # noqa: RUF012

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.seen["train"] = (len(data_batch), list(outputs))

        def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.seen["val"] = type(outputs)

        def after_val_epoch(self, runner, metrics=None):
            self.seen["metrics"] = list(metrics)

        def before_save_checkpoint(self, runner, checkpoint):
            self.seen["checkpoint"] = "state_dict" in checkpoint
            self.seen["at"] = (runner.epoch, runner.iter)

    hooks = [Arguments(), CheckpointHook(interval=1)]
    make_trainer(hooks=hooks, val_data=make_data(), run_dir=tmp_path / "run").train()
    assert Arguments.seen == {
        "train": (2, ["loss"]), "val": torch.Tensor, "metrics": ["loss"], "checkpoint": True,
        "at": (0, 3),
    }  # fmt: skip


def test_generic_methods_are_called_with_the_mode(trace):
    class Generic(Hook):
        def __init__(self):
            self.rows = []

        def _before_epoch(self, runner, mode="train"):
            self.rows.append(("before", mode))

        def _after_epoch(self, runner, mode="train"):
            self.rows.append(("after", mode))

        def after_val_epoch(self, runner, metrics=None):
            self.rows.append("own")

    assert trace(Generic()) == [
        ("before", "train"), ("after", "train"), ("before", "val"), "own",
    ]  # fmt: skip


def test_methods_that_are_not_overridden_cost_nothing():
    class One(Hook):
        def after_train_epoch(self, runner): ...

    adapter = MMEngineAdapter(One())
    assert {name for name in vars(adapter) if name.startswith(("before_", "after_"))} == {
        "after_train_epoch",
        "after_train",  # The end of the one epoch of a training by iterations.
    }
    assert not MMEngineAdapter(Hook()).acts


def test_a_wrong_signature_is_rejected_at_once():
    class Wrong(Hook):
        def after_train_iter(self, runner, batch_idx, data_batch=None): ...

    with pytest.raises(HookError, match="Wrong.after_train_iter has the signature.*outputs="):
        adapt(Wrong())


@pytest.mark.parametrize(
    ("priority", "wanted"),
    [(33, 33), ("LOW", "LOW"), (Priority.VERY_LOW, 90), (Native.HIGH, 30)],
)
def test_priorities_in_every_form(priority, wanted):
    hook = Hook()
    hook.priority = priority
    assert priority_of(hook) == wanted
    assert priority_of(object()) == Native.NORMAL


def test_hooks_run_in_the_order_of_their_priorities(tmp_path):
    order = []

    def make(name, priority):
        def before_train(self, runner):
            order.append(name)

        hook = type(name, (Hook,), {"before_train": before_train})()
        hook.priority = priority
        return hook

    hooks = [make("A", 60), make("B", "HIGH"), make("C", Priority.HIGHEST), make("D", 60)]
    make_trainer(hooks=hooks, run_dir=tmp_path / "run").train()
    assert order == ["C", "B", "A", "D"]


def test_the_message_hub_is_saved_once_and_resumed(tmp_path):
    class Count(Hook):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            runner.message_hub.update_scalar("count", runner.iter)

    def train(epochs, **options):
        hooks = [Trace(), Count(), CheckpointHook(interval=1)]
        trainer = make_trainer(hooks=hooks, max_epochs=epochs, run_dir=tmp_path / "run", **options)
        trainer.train()
        (facade,) = trainer.run._internals.shared.values()
        states = [hook.state_dict() for hook in trainer.run.hooks]
        assert sum("message_hub" in state for state in states) == 1
        return facade.message_hub

    train(1)
    hub = train(2, resume=True)
    assert isinstance(hub, MessageHub)
    assert hub.get_scalar("count").data[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_the_state_of_a_hook_is_saved_too(tmp_path):
    class Remember(Hook):
        def __init__(self):
            self.epochs = 0

        def after_train_epoch(self, runner):
            self.epochs += 1

        def state_dict(self):
            return {"epochs": self.epochs}

        def load_state_dict(self, state):
            self.epochs = state["epochs"]

    def train(epochs, **options):
        hook = Remember()
        hooks = [hook, CheckpointHook(interval=1)]
        make_trainer(hooks=hooks, max_epochs=epochs, run_dir=tmp_path / "run", **options).train()
        return hook.epochs

    assert train(1) == 1
    assert train(3, resume=True) == 3
