"""Updates that run out of memory are made again with smaller microbatches."""

import logging

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_trainer, record, weights

from hookloop.engine.hook import Hook
from hookloop.errors import DataError, ModelError
from hookloop.parallel.world import World, assume
from hookloop.update.update import Update


class Limited(torch.nn.Module):
    """Has room for so many samples, in forward or in backward, and draws random numbers."""

    def __init__(self, room, *, where="forward", norm=False, drops=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.inner = torch.nn.Linear(4, 1)
        self.norm = torch.nn.BatchNorm1d(4, momentum=0.5) if norm else torch.nn.Identity()
        self.drop = torch.nn.Dropout(drops)
        self.room, self.where = room, where
        self.sizes = []
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, inputs):
        self.sizes.append(len(inputs))
        self.calls = self.calls + 1  # In the place of the old tensor.
        output = self.inner(self.drop(self.norm(inputs)))
        if len(inputs) > self.room:
            if self.where == "forward":
                raise torch.OutOfMemoryError("no room")
            output.register_hook(self.fail)
        return output

    def fail(self, gradient):
        raise torch.OutOfMemoryError("no room")


def trained(model, **options):
    options = {"accumulate": "auto", "train_data": make_data(24, 8), "max_epochs": 2} | options
    trainer = make_trainer(model=model, **options)
    trainer.train()
    return trainer


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("room", [8, 5, 3, 1])
def test_the_update_is_that_of_the_whole_batch(room, where, caplog):
    whole = trained(Limited(100), accumulate=1)
    split = trained(Limited(room, where=where))
    for name, value in weights(whole.run.model).items():
        if name != "calls":
            assert torch.allclose(value, weights(split.run.model)[name], atol=1e-6)
    one = whole.run.metrics.all_latest()["train/loss"]
    assert split.run.metrics.all_latest()["train/loss"] == pytest.approx(one, rel=1e-5)
    losses = split.run.metrics.series("train/loss")
    assert losses.state_dict()["count"] in (0, 3, 6)  # Each once, although some were made twice.
    parts = {8: 1, 5: 2, 3: 4, 1: 8}[room]
    assert split.run.progress.split == parts
    warnings = [one for one in caplog.messages if "ran out of memory" in one]
    assert len(warnings) == (parts > 1)
    if parts > 1:
        assert (
            f"Iteration 1 ran out of memory and was made again: from now on each microbatch is "
            f"split into {parts} parts." in warnings[0]
        )
        # The first iteration was tried with each number of parts, later ones with the last.
        assert len(split.run.model.sizes) == sum(1 for p in (1, 2, 4) if p < parts) + 6 * parts


class PutSamples(Hook):
    """Puts a number in every forward, before the backward that may run out of memory."""

    def after_forward(self, run):
        run.metrics.put("train/by_hook", float(len(run.batch[0])))


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_what_a_step_or_a_hook_puts_is_recorded_once(where):
    def step(run, batch):
        inputs, targets = batch
        run.metrics.put("train/own", float(len(inputs)))  # Before it runs out of memory.
        run.output = run.model(inputs)
        return torch.nn.functional.mse_loss(run.output, targets)

    options = {"step": step, "max_epochs": 1, "hooks": [PutSamples()]}
    late = trained(Limited(3, where=where), **options)
    early = trained(Limited(8), **options)
    # Each sample is counted once in each of three iterations, whatever parts were tried before.
    for name in ("train/own", "train/by_hook"):
        for trainer in (late, early):
            total, _ = trainer.run.metrics.series(name).sums()
            assert total == 24, (name, total)


def test_random_numbers_and_buffers_are_those_of_a_run_that_was_split_from_the_start():
    options = {"norm": True, "drops": 0.4}
    late, early = Limited(4, **options), Limited(100, **options)
    trained(late, seed=3)
    trainer = make_trainer(
        model=early, accumulate="auto", train_data=make_data(24, 8), max_epochs=2, seed=3
    )
    trainer.run.progress.split = 2
    trainer.train()
    assert_same_bits(late, early)
    assert int(late.calls) == 12  # Two parts in each of six iterations; the failed one is undone.


def test_nothing_changes_where_memory_suffices():
    plain, auto = Limited(100, drops=0.3), Limited(100, drops=0.3)
    trained(plain, accumulate=1, seed=1)
    trained(auto, seed=1)
    assert_same_bits(plain, auto)


def test_hooks_see_the_parts_and_act_again():
    hook, calls = record(
        ["before_forward", "after_backward", "before_update", "after_train_iter"],
        lambda run: len(run.batch[0]),
    )
    trained(Limited(4), hooks=[hook], max_iters=1)
    assert calls == [
        ("before_forward", 8),
        ("before_forward", 4),
        ("after_backward", 4),
        ("before_forward", 4),
        ("after_backward", 4),
        ("before_update", 4),
        ("after_train_iter", 4),
    ]


def test_a_resume_splits_from_the_start(tmp_path, caplog):
    from hookloop.hooks import SaveCheckpoint

    def run(room, **options):
        model = Limited(room, drops=0.3)
        hooks = [SaveCheckpoint(every=None)]
        return trained(model, hooks=hooks, run_dir=tmp_path / "run", **options)

    whole = trained(Limited(4, drops=0.3), seed=1)
    run(4, max_epochs=None, max_iters=2, seed=1)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        again = run(4, max_epochs=2, resume=True, seed=1)
    assert again.run.model.sizes.count(8) == 1  # Before the checkpoint, which has the list.
    assert not [one for one in caplog.messages if "ran out of memory" in one]
    assert "ran out of memory" in (tmp_path / "run" / "run.log").read_text(encoding="utf-8")
    assert_same_bits(whole.run.model, again.run.model)


def test_a_sample_that_does_not_fit_is_reported_as_such():
    with pytest.raises(torch.OutOfMemoryError, match="no room") as caught:
        trained(Limited(0))
    assert any("a single sample does not fit" in note for note in caught.value.__notes__)


class Opaque:
    def __init__(self, inputs, targets):
        self.inputs, self.targets = inputs, targets


def test_a_batch_that_cannot_be_split_is_reported_with_the_cause():
    def step(run, batch):
        return torch.nn.functional.mse_loss(run.model(batch.inputs), batch.targets)

    data = [Opaque(*batch) for batch in make_data(24, 8)]
    with pytest.raises(DataError, match="cannot be split.*Opaque") as caught:
        trained(Limited(4), step=step, train_data=data)
    assert isinstance(caught.value.__context__, torch.OutOfMemoryError)


def test_an_optimizer_that_runs_out_is_not_repeated():
    class Greedy(torch.optim.SGD):
        def step(self, closure=None):
            raise torch.OutOfMemoryError("no room for the state")

    model = Limited(100)
    with pytest.raises(torch.OutOfMemoryError) as caught:
        trained(model, optimizer=Greedy(model.parameters(), lr=0.1))
    assert any("gradients were complete" in note for note in caught.value.__notes__)
    assert len(model.sizes) == 1


def test_each_of_two_updates_is_repeated_by_itself():
    torch.manual_seed(0)
    model = torch.nn.ModuleDict({"one": Limited(100), "two": Limited(4)})
    optimizers = {name: torch.optim.SGD(part.parameters(), 0.1) for name, part in model.items()}

    def step(name):
        return lambda run, batch: torch.nn.functional.mse_loss(run.model[name](batch[0]), batch[1])

    trained(model, step={name: step(name) for name in model}, optimizer=optimizers, max_iters=1)
    assert model["one"].sizes == [8] and model["two"].sizes == [8, 4, 4]


class OwnUpdate(Update):
    def make(self, run, batches):
        """Do nothing."""


def own_update(model):
    return OwnUpdate("", lambda run: None, lambda run: None, [])


class BringUpdate(Hook):
    takes_part_in_training = True

    def change_update(self, run, update):
        return OwnUpdate.like(update)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": own_update(None)}, "an Update of your own"),
        ({"hooks": [BringUpdate()]}, "an Update of your own"),
    ],
)
def test_what_cannot_be_repeated_is_rejected_before_the_start(options, message):
    with pytest.raises(ModelError, match=message) as caught:
        make_trainer(accumulate="auto", **options).check()
    assert caught.value.argument == "accumulate"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"parallel": "sharded"}, "with a sharded model"),
        ({"model": torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.SyncBatchNorm(1))}, "Sync"),
        ({"data.mix": "zip", "loss": None, "step": lambda run, batch: None}, "with mix='zip'"),
    ],
)
def test_ranks_that_would_wait_for_each_other_are_rejected(options, reason):
    streams = {"train_data": {"a": make_data(24, 8)}} if "data.mix" in options else {}
    with assume(World(0, 2, 0, 2)):
        trainer = make_trainer(accumulate="auto", **streams, **options)
    with pytest.raises(ModelError, match=f"does not work on 2 ranks.*{reason}.*Write a") as caught:
        trainer.check()
    assert caught.value.argument == "accumulate"


def test_a_loop_of_ones_own_is_rejected():
    with pytest.raises(ModelError, match="accumulate="), make_trainer(accumulate="auto").loop():
        pass
