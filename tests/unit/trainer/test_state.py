"""What changed between a run and its resume: accepted, reported, or rejected."""

import logging
from dataclasses import replace

import pytest
import torch
from tests.tiny import make_data, make_trainer
from tests.unit.checkpoint.sharding import run_ranks

from hookloop.checkpoint.shards.writing import stage
from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.state.optimizers import optimizer_state
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.hook import Hook
from hookloop.errors import CheckpointError
from hookloop.hooks import SaveCheckpoint, StepSchedules
from hookloop.lr_schedule import Schedule


class Count(Hook):
    """A hook with a state."""

    def __init__(self):
        self.count = 0

    def after_train_iter(self, run):
        self.count += 1

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def train(run_dir, *, hooks=(), resume=None, epochs=1, **options):
    trainer = make_trainer(
        hooks=[SaveCheckpoint(), *hooks],
        run_dir=run_dir,
        resume=resume,
        max_epochs=epochs,
        **options,
    )
    trainer.train()
    return trainer


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), **({"lr": 0.05} | options))


def model(width=8):
    return torch.nn.Sequential(
        torch.nn.Linear(4, width), torch.nn.Tanh(), torch.nn.Linear(width, 1)
    )


def test_another_model_is_rejected(tmp_path):
    train(tmp_path)
    with pytest.raises(CheckpointError, match="is of another model") as caught:
        train(tmp_path, resume=True, epochs=2, model=model(9))
    assert "size mismatch for 0.weight" in str(caught.value)


def test_a_model_of_another_kind_is_rejected_by_name(tmp_path):
    train(tmp_path)
    with pytest.raises(CheckpointError, match="'Sequential'.*'Linear'"):
        train(tmp_path, resume=True, epochs=2, model=torch.nn.Linear(4, 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: sgd(m, lr=0.1), "optimizer.lr: 0.05 -> 0.1"),
        (lambda m: torch.optim.Adam(m.parameters()), "optimizer.type: 'SGD' -> 'Adam'"),
        (lambda m: {"one": sgd(m)}, "optimizer.one: nothing -> "),
    ],
)
def test_another_optimizer_is_rejected_with_the_difference(tmp_path, make, message):
    train(tmp_path)
    other = model()
    step = {"one": lambda run, batch: run.model(batch[0]).mean()}
    changed = make(other)
    options = {"step": step} if isinstance(changed, dict) else {}
    with pytest.raises(CheckpointError, match="cannot be resumed with another") as caught:
        train(tmp_path, resume=True, epochs=2, model=other, optimizer=changed, **options)
    assert message in str(caught.value)


def test_another_schedule_is_rejected(tmp_path):
    def schedule(kind, other):
        optimizer = sgd(other)
        return {
            "model": other,
            "optimizer": optimizer,
            "schedule": Schedule(kind(optimizer)),
            "hooks": [StepSchedules()],
        }

    schedulers = torch.optim.lr_scheduler
    train(tmp_path, **schedule(lambda o: schedulers.ExponentialLR(o, 0.9), model()))
    with pytest.raises(CheckpointError, match="'ExponentialLR'.*'StepLR'"):
        train(tmp_path, resume=True, **schedule(lambda o: schedulers.StepLR(o, 2), model()))


def test_other_changes_of_the_config_are_listed(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    train(tmp_path, setup={"config": {"seed": 1, "import_path": ["a"], "data": {"size": 4}}})
    new = {"seed": 1, "import_path": ["b"], "data": {"size": 8}, "name": "x"}
    train(tmp_path, resume=True, epochs=2, setup={"config": new})
    assert (
        "Resumed with a changed config: data.size: 4 -> 8; name: nothing -> 'x'" in caplog.messages
    )
    assert "size: 8" in (tmp_path / "config.yaml").read_text()


def test_a_hook_that_is_missing_or_new_is_reported(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    train(tmp_path, hooks=[Count()])
    renamed = Count().named("counter")
    train(tmp_path, hooks=[renamed], resume=True, epochs=2)
    assert "The checkpoint has states of hooks that are gone: count" in caplog.messages
    assert "The checkpoint has no state for the hooks: counter" in caplog.messages
    assert renamed.count == 3


def test_a_hook_that_stays_continues(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    train(tmp_path, hooks=[Count()])
    hook = Count()
    train(tmp_path, hooks=[hook], resume=True, epochs=2)
    assert hook.count == 6
    assert not caplog.messages


def test_a_hook_that_cannot_take_its_state_is_named(tmp_path):
    class Changed(Count):
        name = "count"

        def load_state_dict(self, state):
            self.count = state["counted"]

    train(tmp_path, hooks=[Count()])
    with pytest.raises(KeyError) as caught:
        train(tmp_path, hooks=[Changed()], resume=True, epochs=2)
    assert "while the hook 'count' (Changed) restored its state from the checkpoint" in str(
        caught.value.__notes__
    )


def test_a_state_that_no_file_could_give_back_is_rejected_when_it_is_saved(tmp_path):
    class Odd(Hook):
        def after_train_iter(self, run): ...

        def state_dict(self):
            return {"where": object()}

    with pytest.raises(CheckpointError, match=r"'hooks\.odd\.where'"):
        train(tmp_path, hooks=[Odd()])


def test_the_generator_of_a_validation_stream_continues(tmp_path):
    def streams():
        generator = torch.Generator().manual_seed(3)
        return {"a": make_data(8, shuffle=True, generator=generator), "b": make_data(4)}

    train(tmp_path / "cut", val_data=streams())
    resumed = train(tmp_path / "cut", val_data=streams(), resume=True, epochs=2)
    whole = train(tmp_path / "whole", val_data=streams(), epochs=2)
    states = [t.run.val_data["a"].reading_state() for t in (resumed, whole)]
    assert torch.equal(*(state["generators"][0] for state in states))


@pytest.mark.slow
def test_a_directory_of_shards_is_resumed_in_one_process(tmp_path):
    def make(**options):
        torch.manual_seed(0)
        net = model()
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        hooks = [SaveCheckpoint(keep=5)]
        return make_trainer(model=net, optimizer=adam, hooks=hooks, **options)

    whole = make(run_dir=tmp_path / "whole", max_epochs=3)
    whole.train()
    first = make(run_dir=tmp_path / "cut", max_epochs=1)
    first.train()
    store = CheckpointStore(tmp_path / "cut")
    (file,) = tmp_path.glob("cut/epoch_*.pth")
    state = store.load(file.name)
    for name, optimizer in first.run.optimizers.items():
        state["optimizers"][name] = optimizer_state(first.run.model, optimizer)
    store.write_shards(stage(state), replace(store.index.entries[file.name], name=file.stem))
    store.mark_last(file.stem)
    file.unlink()
    for resume in (True, f"{tmp_path}/cut/{file.stem}"):
        resumed = make(run_dir=tmp_path / "cut", resume=resume, max_epochs=3)
        resumed.train()
        assert resumed.run.progress.epoch == 3
        assert not compare(resumed.run.model.state_dict(), whole.run.model.state_dict())
        store.mark_last(file.stem)
    one, other = tmp_path / "cut" / file.stem, tmp_path / "whole" / file.name
    started = make(setup={"load_from": one}, run_dir=tmp_path / "one", max_epochs=2)
    continued = make(setup={"load_from": other}, run_dir=tmp_path / "other", max_epochs=2)
    started.train()
    continued.train()
    assert not compare(started.run.model.state_dict(), continued.run.model.state_dict())


@pytest.mark.slow
def test_a_model_keeps_its_name_when_it_is_sharded(tmp_path):
    run_ranks(
        tmp_path,
        1,
        """
        from torch.distributed._composable.replicate import replicate
        from hookloop.trainer.resume_checks import _class_name

        for share in (fully_shard, replicate):
            model = Net()
            share(model)
            assert type(model).__name__ != "Net" and _class_name(type(model)) == "Net"
        assert _class_name(Net) == "Net"
        """,
    )
