"""Updates of a user's own: given to the Trainer as ``step=``, or brought by a hook."""

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer, record
from torch.nn import functional

from hookloop.engine.hook import Hook
from hookloop.testing import assert_resumes_exactly
from hookloop.update.objective import forward_inputs, loss_from
from hookloop.update.update import Update


def mse(run, batch):
    return functional.mse_loss(run.model(batch[0]), batch[1])


def own_update(kind, model, **options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return kind("", forward_inputs, loss_from(functional.mse_loss), [optimizer], **options)


def train_own(kind, model=None, **options):
    model = model or make_model()
    update = own_update(kind, model)
    return make_trainer(model=model, step=update, optimizer=update.optimizers[0], **options)


class Negated(Update):
    """Climbs instead of descending."""

    def backward(self, loss):
        super().backward(-loss)


class EverySecond(Update):
    """Steps after every second iteration; gradients wait in between."""

    def zero_grad(self):
        pass

    def apply(self, run):
        if run.progress.iter % 2:
            super().apply(run)
            super().zero_grad()


class Bring(Hook):
    """Brings an update of a class."""

    takes_part_in_training = True

    def __init__(self, kind):
        self.kind = kind

    def change_update(self, run, update):
        return self.kind.like(update)


class Twice(Update):
    """Makes the whole update its own way."""

    def make(self, run, batches):
        for _ in range(2):
            super().make(run, batches)


def test_an_update_of_ones_own_is_made():
    trainer = train_own(Negated, max_epochs=4)
    trainer.train()
    losses = [float(loss) for loss in trainer.run.metrics.series("train/loss").recent]
    assert losses[-1] > losses[0]


def test_one_that_makes_all_of_it_counts_one_iteration(tmp_path):
    hook, calls = record(["after_update", "after_train_iter"], lambda run: run.progress.iter)
    trainer = train_own(Twice, hooks=[hook], run_dir=tmp_path)
    trainer.train()
    assert [point for point, _ in calls].count("after_update") == 6
    assert trainer.run.progress.iter == 3
    repeated = train_own(Update, train_data=[batch for batch in make_data() for _ in range(2)])
    repeated.train()
    assert_same_bits(trainer.run.model, repeated.run.model)


@pytest.mark.slow
def test_one_that_keeps_gradients_resumes_to_the_same_bits():
    def make(**options):
        return train_own(EverySecond, train_data=make_data(20, shuffle=True), max_epochs=2, seed=3,
                         **options)  # fmt: skip

    assert own_update(EverySecond, make_model()).keeps_gradients
    assert not own_update(Negated, make_model()).keeps_gradients
    assert_resumes_exactly(make, stop_at=(1, 2, 5, 6))


def test_one_that_steps_every_second_iteration_equals_the_update_of_both_batches():
    trainer = train_own(EverySecond, train_data=make_data(16), max_epochs=2)
    trainer.train()
    whole = make_trainer(
        model=(model := make_model()),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        step=lambda run, batch: 2 * mse(run, batch),
        train_data=make_data(16),
        accumulate=2,
        max_epochs=2,
    )
    whole.train()
    ours, theirs = trainer.run.model.state_dict(), whole.run.model.state_dict()
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-6) for name in theirs)


class Doubled(Update):
    """Counts each loss twice."""

    def compute(self, run):
        loss = super().compute(run)
        run.loss = None if loss is None else 2 * loss
        return run.loss


@pytest.mark.parametrize(
    "options", [{}, {"accumulate": 3}, {"accumulate": "auto"}, {"precision": "bf16"}]
)
def test_a_compute_of_ones_own_takes_effect(options):
    def train(kind):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        update = kind("", forward_inputs, loss_from(torch.nn.functional.mse_loss), [optimizer])
        trainer = make_trainer(
            model=model,
            optimizer=optimizer,
            step=update,
            loss=None,
            val_data=make_data(),
            **options,
        )
        assert trainer.train().status == "completed"
        return trainer.run.metrics

    own, plain = train(Doubled), train(Update)
    # In the first iteration the weights are the same, and in the validation they are not any more.
    first = [one.values_since({}, ["train/loss"])["train/loss"][0] for one in (own, plain)]
    assert first[0] == pytest.approx(2 * first[1], rel=1e-2)
    assert own.latest("val/loss") != plain.latest("val/loss")


@pytest.mark.parametrize("kind", [Negated, EverySecond, Twice])
@pytest.mark.parametrize("options", [{}, {"accumulate": 2}, {"clip_norm": 0.1}])
def test_a_hook_brings_the_update_that_a_step_would(kind, options):
    one, two = make_model(), make_model()
    given = own_update(kind, one, **{k: v for k, v in options.items() if k == "clip_norm"})
    rest = {key: value for key, value in options.items() if key != "clip_norm"}
    make_trainer(
        model=one, step=given, optimizer=given.optimizers[0], loss=None, max_epochs=2, **rest
    ).train()
    brought = make_trainer(
        model=two,
        optimizer=torch.optim.SGD(two.parameters(), lr=0.05, momentum=0.9),
        loss=functional.mse_loss,
        hooks=[Bring(kind)],
        max_epochs=1,
        **options,
    )
    brought.train()
    brought.train(max_epochs=2)  # Again: the update is made of the Trainer's own.
    assert_same_bits(one, two)


def test_a_hook_gets_what_the_hooks_before_it_bring():
    seen = []

    class Look(Bring):
        def change_update(self, run, update):
            seen.append(type(update))
            return super().change_update(run, update)

    hooks = [Look(Negated).named("first"), Look(Twice).named("second")]
    make_trainer(hooks=hooks, max_iters=1).check()
    assert seen == [Update, Negated]


def test_each_of_several_updates_is_changed():
    model = torch.nn.ModuleDict({"one": torch.nn.Linear(4, 1), "two": torch.nn.Linear(4, 1)})
    trainer = make_trainer(
        model=model,
        loss=None,
        step={
            name: lambda run, batch, part=part: functional.mse_loss(part(batch[0]), batch[1])
            for name, part in model.items()
        },
        optimizer={
            name: torch.optim.SGD(part.parameters(), lr=0.1) for name, part in model.items()
        },
        hooks=[Bring(Negated)],
        max_epochs=3,
    )
    trainer.train()
    for name in model:
        losses = [float(one) for one in trainer.run.metrics.series(f"train/{name}_loss").recent]
        assert losses[-1] > losses[0]
