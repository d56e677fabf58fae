"""A loop of one's own: the updates are the user's, all the rest is as with `Trainer.train`."""

import json

import pytest
import torch
from tests.names import epoch_file, iter_file
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer, record

from hookloop import Hook, Update
from hookloop.engine.points import POINTS
from hookloop.errors import HookError, ModelError
from hookloop.hooks import (
    AverageWeights,
    ClipGradients,
    SaveCheckpoint,
    StopOnPlateau,
    WriteMetrics,
)
from hookloop.outcome import Interrupted

OUTSIDE = [point.name for point in POINTS if not point.within]


class Cut(Exception):
    pass


class WatchSize(Hook):
    """Reads a number that only the loop records."""

    reads = ("train/size",)
    sizes = ()

    def after_train_epoch(self, run):
        self.sizes = (*self.sizes, run.metrics.mean("train/size"))


def update(trainer, batch):
    run = trainer.run
    inputs, targets = batch
    run.optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(run.model(inputs), targets)
    loss.backward()
    run.optimizer.step()
    trainer.record(loss)


def train(trainer, cut_at=None):
    with trainer.loop() as batches:
        for batch in batches:
            if trainer.run.progress.iter == cut_at:
                raise Cut
            update(trainer, batch)
    return trainer.run.outcome


@pytest.mark.parametrize("limits", [{"max_epochs": 3}, {"max_iters": 7}])
def test_the_weights_are_those_of_train(limits):
    own, theirs = make_trainer(**limits), make_trainer(**limits)
    assert train(own).status == theirs.train().status == "completed"
    assert own.run.progress == theirs.run.progress
    assert_same_bits(own.run.model, theirs.run.model)


def test_the_points_outside_the_update_are_fired_as_by_train(tmp_path):
    fired = []
    for train_so in (lambda trainer: trainer.train(), train):
        hook, calls = record(OUTSIDE, lambda run: run.progress.iter)
        trainer = make_trainer(
            hooks=[hook], val_data=make_data(), max_epochs=2, run_dir=tmp_path / str(len(fired))
        )
        train_so(trainer)
        fired.append(calls)
    assert fired[0] == fired[1] and len(fired[0]) > 30


@pytest.mark.slow
def test_a_run_that_was_cut_off_continues_to_the_same_bits(tmp_path):
    def make(place, **options):
        data = make_data(24, shuffle=True)
        hooks = [SaveCheckpoint(every="2 iters"), AverageWeights(momentum=0.1)]
        return make_trainer(
            train_data=data, max_epochs=3, hooks=hooks, run_dir=tmp_path / place, seed=3, **options
        )

    whole, cut = make("whole"), make("cut")
    train(whole)
    with pytest.raises(Cut):
        train(cut, cut_at=9)
    assert cut.run.outcome.status == "failed"
    resumed = make("cut", resume=True)
    train(resumed)
    assert_same_bits(whole.run.model, resumed.run.model)
    averages = [one.run.hooks[0].state_dict() for one in (whole, resumed)]
    assert averages[0]["updates"] == averages[1]["updates"] == 18
    for name, value in averages[0]["averaged"].items():
        assert torch.equal(value, averages[1]["averaged"][name])


def test_validation_stops_it_and_metrics_are_written(tmp_path):
    trainer = make_trainer(
        val_data=make_data(),
        max_epochs=50,
        hooks=[StopOnPlateau("val/loss", patience=1, min_delta=1e9), WriteMetrics(every=1)],
        run_dir=tmp_path / "run",
    )
    outcome = train(trainer)
    assert outcome.status == "stopped" and trainer.run.progress.epoch == 2
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert sum("train/loss" in json.loads(line) for line in lines) >= 6
    assert outcome.metrics["train/loss"] > 0 and outcome.metrics["val/loss"] > 0


def test_other_numbers_are_recorded_and_may_be_read_by_hooks():
    hook = WatchSize()
    trainer = make_trainer(max_epochs=2, hooks=[hook])
    with trainer.loop() as batches:
        for batch in batches:
            update(trainer, batch)
            trainer.record(trainer.run.loss, size=len(batch[0]))
    assert hook.sizes == (4.0, 4.0)


def test_a_break_ends_the_run_in_order(tmp_path):
    hook, calls = record(OUTSIDE, lambda run: run.progress.iter)
    trainer = make_trainer(max_epochs=9, hooks=[hook], run_dir=tmp_path / "run")
    with trainer.loop() as batches:
        for batch in batches:
            update(trainer, batch)
            if trainer.run.progress.iter == 3:
                break
    assert trainer.run.outcome.status == "stopped"
    assert "left" in trainer.run.outcome.reason
    assert trainer.run.progress.iter == 4
    assert calls[-3:] == [("on_stop", 4), ("after_train", 4), ("after_run", 4)]


def test_a_signal_ends_it_after_the_iteration():
    trainer = make_trainer(max_epochs=9)

    @trainer.on("after_train_iter")
    def terminate(run):
        run.stop("SIGTERM", signal=15)

    with pytest.raises(Interrupted):
        train(trainer)
    assert trainer.run.progress.iter == 1


def test_a_hook_within_the_update_is_rejected():
    with (
        pytest.raises(HookError, match="'clip_gradients'.*before_update"),
        make_trainer(hooks=[ClipGradients(1.0)]).loop(),
    ):
        pass


@pytest.mark.parametrize("option", [{"accumulate": 2}, {"clip_norm": 1.0}])
def test_parts_of_the_update_are_rejected(option):
    with pytest.raises(ModelError, match="parts of the update"), make_trainer(**option).loop():
        pass


def test_an_optimizer_with_a_closure_is_for_a_loop_of_ones_own():
    model = make_model()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    trainer = make_trainer(model=model, optimizer=optimizer, max_epochs=2)
    with pytest.raises(ModelError, match=r"LBFGS.*trainer.loop\(\)"):
        trainer.train()
    losses = []
    with trainer.loop() as batches:
        for inputs, targets in batches:

            def closure(inputs=inputs, targets=targets):
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(inputs), targets)
                loss.backward()
                return loss

            losses.append(optimizer.step(closure))
            trainer.record(losses[-1])
    assert losses[-1] < losses[0]


def test_an_update_of_ones_own_may_call_an_optimizer_with_a_closure():
    model = make_model()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    losses = []

    class WithClosure(Update):
        def make(self, run, batches):
            (run.batch,) = batches

            def closure():
                self.zero_grad()
                loss = self.compute(run)
                loss.backward()
                return loss

            losses.append(optimizer.step(closure))
            self.record(run, losses[-1])

    def loss_of(run):
        return torch.nn.functional.mse_loss(run.output, run.batch[1])

    update = WithClosure("", lambda run: run.model(run.batch[0]), loss_of, [optimizer])
    make_trainer(model=model, optimizer=optimizer, loss=None, step=update, max_epochs=2).train()
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("forgotten", ["everything", "the step"])
def test_a_loop_that_changes_nothing_fails(forgotten):
    trainer = make_trainer(max_epochs=4)

    def train():
        with trainer.loop() as batches:
            for inputs, targets in batches:
                loss = torch.nn.functional.mse_loss(trainer.run.model(inputs), targets)
                if forgotten == "the step":
                    trainer.run.optimizer.zero_grad()
                    loss.backward()

    with pytest.raises(ModelError, match="12 iterations and changed nothing"):
        train()


@pytest.mark.parametrize("change", ["through data", "a buffer", "only a look"])
def test_a_loop_may_change_a_model_in_its_own_way(change):
    model = make_model()
    model.register_buffer("mean", torch.zeros(()))
    trainer = make_trainer(model=model, max_epochs=4)
    with trainer.loop() as batches:
        for number, (inputs, _) in enumerate(batches):
            if change == "through data":
                model[0].weight.data.mul_(0.5)
            elif change == "a buffer":
                model.mean.copy_(inputs.mean())
            elif number == 3:
                break


def test_two_passes_per_batch():
    """As sharpness-aware minimisation makes them."""
    model = make_model()
    trainer = make_trainer(model=model, max_epochs=2)
    parameters = list(model.parameters())
    with trainer.loop() as batches:
        for inputs, targets in batches:
            torch.nn.functional.mse_loss(model(inputs), targets).backward()
            moves = [0.05 * one.grad / one.grad.norm() for one in parameters]
            with torch.no_grad():
                torch._foreach_add_(parameters, moves)
            trainer.run.optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            with torch.no_grad():
                torch._foreach_sub_(parameters, moves)
            trainer.run.optimizer.step()
            trainer.run.optimizer.zero_grad()
            trainer.record(loss)
    assert trainer.run.outcome.status == "completed" and trainer.run.progress.iter == 6


# --- updates that are spread over iterations ---------------------------------------------------


def clears_after(run, compute, number):
    compute().backward()
    if number % 3 == 2:
        run.optimizer.step()
        run.optimizer.zero_grad()


def clears_before(run, compute, number):
    if number % 3 == 0:
        run.optimizer.zero_grad()
    compute().backward()
    if number % 3 == 2:
        run.optimizer.step()


def clears_to_zero(run, compute, number):
    compute().backward()
    if number % 3 == 2:
        run.optimizer.step()
        run.optimizer.zero_grad(set_to_none=False)


def steps_first(run, compute, number):
    if number % 3 == 0:
        run.optimizer.step()
        run.optimizer.zero_grad()
    compute().backward()


def drops_by_hand(run, compute, number):
    compute().backward()
    if number % 3 == 2:
        run.optimizer.step()
        for parameter in run.model.parameters():
            parameter.grad = None


def every_iteration(run, compute, number):
    run.optimizer.zero_grad()
    compute().backward()
    run.optimizer.step()


def every_iteration_to_zero(run, compute, number):
    run.optimizer.zero_grad(set_to_none=False)
    compute().backward()
    run.optimizer.step()


SPREAD = [clears_after, clears_before, clears_to_zero, steps_first, drops_by_hand]
EVERY = [every_iteration, every_iteration_to_zero]


def spread(directory, update, cut_at=None, optimizer=torch.optim.Adam, **options):
    """Train a model of which the second half is only used now and then."""
    model = torch.nn.ModuleList([make_model(), make_model()])
    trainer = make_trainer(
        model=model,
        optimizer=optimizer(model.parameters(), lr=0.05),
        train_data=make_data(20, shuffle=True),
        max_epochs=2,
        hooks=[SaveCheckpoint(every="1 iter")],
        run_dir=directory,
        seed=3,
        **options,
    )
    run = trainer.run
    with trainer.loop() as batches:
        for inputs, targets in batches:
            number = run.progress.iter
            if number == cut_at:
                raise Cut

            def compute(inputs=inputs, targets=targets, number=number):
                output = model[0](inputs)
                if number % 4 == 1:
                    output = output + model[1](inputs)
                return torch.nn.functional.mse_loss(output, targets)

            update(run, compute, number)
    return trainer


@pytest.mark.slow
@pytest.mark.parametrize("update", [*SPREAD, *EVERY], ids=lambda update: update.__name__)
def test_gradients_that_wait_for_an_update_survive_a_resume(update, tmp_path):
    whole = spread(tmp_path / "whole", update)
    for cut_at in (2, 3, 4, 7):
        with pytest.raises(Cut):
            spread(tmp_path / str(cut_at), update, cut_at)
        resumed = spread(tmp_path / str(cut_at), update, resume=True)
        assert resumed.run.progress.iter == 10
        assert_same_bits(whole.run.model, resumed.run.model)


def gradients_in(path):
    return torch.load(path, weights_only=True)["gradients"]["default"]


@pytest.mark.slow
def test_a_checkpoint_is_no_larger_where_none_wait(tmp_path):
    spread(tmp_path / "every", every_iteration)
    spread(tmp_path / "spread", clears_before)
    assert set(gradients_in(tmp_path / "every" / iter_file(10)).values()) == {None}
    assert all(
        isinstance(grad, torch.Tensor)
        for grad in gradients_in(tmp_path / "spread" / iter_file(10)).values()
    )


@pytest.mark.slow
def test_each_optimizer_has_its_own(tmp_path):
    def run_to(directory, cut_at=None, **options):
        model = torch.nn.ModuleList([make_model(), make_model(1)])
        optimizers = {
            str(n): torch.optim.SGD(one.parameters(), lr=0.05, momentum=0.9)
            for n, one in enumerate(model)
        }
        trainer = make_trainer(
            model=model,
            optimizer=optimizers,
            train_data=make_data(32),
            hooks=[SaveCheckpoint(every="1 iter")],
            run_dir=directory,
            **options,
        )
        with trainer.loop() as batches:
            for inputs, targets in batches:
                number = trainer.run.progress.iter
                if number == cut_at:
                    raise Cut
                output = model[0](inputs) * model[1](inputs)
                torch.nn.functional.mse_loss(output, targets).backward()
                for period, optimizer in zip((2, 3), optimizers.values(), strict=True):
                    if number % period == period - 1:
                        optimizer.step()
                        optimizer.zero_grad()
        return model

    whole = run_to(tmp_path / "whole")
    for cut_at in (3, 4, 5):
        with pytest.raises(Cut):
            run_to(tmp_path / str(cut_at), cut_at)
        assert_same_bits(whole, run_to(tmp_path / str(cut_at), resume=True))


def test_train_keeps_none_and_takes_up_a_run_that_did(tmp_path):
    with pytest.raises(Cut):
        spread(tmp_path / "run", clears_after, cut_at=2)
    model = torch.nn.ModuleList([make_model(), make_model()])

    def step(run, batch):
        return torch.nn.functional.mse_loss(run.model[0](batch[0]), batch[1])

    trainer = make_trainer(
        model=model,
        step=step,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.05),
        train_data=make_data(20, shuffle=True),
        max_epochs=2,
        hooks=[SaveCheckpoint(every="1 epoch")],
        run_dir=tmp_path / "run",
        resume=True,
    )
    assert trainer.train().status == "completed"
    assert "gradients" not in torch.load(tmp_path / "run" / epoch_file(2), weights_only=True)
