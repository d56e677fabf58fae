"""Hooks that only observe: whatever they draw or read, the training is the same without them."""

import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Hook, limit
from hookloop.engine.points import POINTS
from hookloop.hooks import RecordTimes
from hookloop.testing import assert_resumes_exactly, tiny_trainer


def draw(run, *_):
    random.gauss(0, 1)
    np.random.randn(3)
    torch.rand(2)


class Draw(Hook):
    """Draws at every point."""


for _point in POINTS:
    setattr(Draw, _point.name, lambda self, run, *_: draw(run))


class Seed(Hook):
    def after_train_iter(self, run):
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)


class CallModel(Hook):
    def after_train_iter(self, run):
        run.model(torch.zeros(8, 4))  # In training mode, with its dropout.


class DrawSometimes(Hook):
    @limit("2 iters")
    def after_train_iter(self, run):
        draw(run)

    def after_update(self, run):
        if run.progress.iter == 3:
            draw(run)


class DrawAndTime(RecordTimes):
    """Inherits from one that declares to draw nothing."""

    def after_train_iter(self, run):
        super().after_train_iter(run)
        draw(run)


class ReadData(Hook):
    """Reads all data in the middle of an epoch, each with two different loaders at a time."""

    def after_train_iter(self, run):
        for source in (run.train_data, *run.val_data.values(), *run._internals.test_data.values()):
            for _ in zip(source, source.data, strict=False):
                break
            assert len(list(source)) == source.num_batches


class Fail(Hook):
    on_error = "disable"

    def after_train_iter(self, run):
        draw(run)
        raise ValueError("broken")


OBSERVERS = [Draw, Seed, CallModel, DrawSometimes, DrawAndTime, ReadData, Fail]


def loader(workers=0, **options):
    inputs = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(inputs, inputs[:, :3].argmax(1))
    return DataLoader(data, batch_size=4, shuffle=True, num_workers=workers, **options)


def train(*hooks, data=loader, **options):
    """Train; return the weights and every number that was recorded."""
    trainer = tiny_trainer(
        *hooks,
        train_data=data(),
        val_data=data(generator=torch.Generator().manual_seed(5)),
        **options,
    )
    recorded = []

    def record(run, *_):
        numbers = {n: v for n, v in run.metrics.all_latest().items() if n.endswith("/loss")}
        recorded.append((run.progress.iter, numbers))

    for point in ("after_train_epoch", "after_val"):
        trainer.on(point)(record)
    trainer.train()
    weights = {name: one.tolist() for name, one in trainer.run.model.state_dict().items()}
    return weights, recorded, torch.get_rng_state().tolist(), np.random.get_state()[2]


def with_own_generator(**options):
    return loader(**({"generator": torch.Generator().manual_seed(3)} | options))


@pytest.mark.parametrize("data", [loader, with_own_generator])
@pytest.mark.parametrize("hook", OBSERVERS)
def test_an_observing_hook_changes_neither_weights_nor_recorded_numbers(hook, data, tmp_path):
    plain = train(data=data, run_dir=tmp_path / "plain")
    assert train(hook(), data=data, run_dir=tmp_path / "observed") == plain


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True])
def test_nor_does_one_that_starts_workers_of_its_own(persistent, tmp_path):
    def data(**options):
        return loader(workers=1, persistent_workers=persistent, **options)

    plain = train(data=data, run_dir=tmp_path / "plain")
    assert train(ReadData(), data=data, run_dir=tmp_path / "observed") == plain


def test_nor_does_a_function(tmp_path):
    def attach(run):
        draw(run)

    plain = tiny_trainer(run_dir=tmp_path / "plain")
    observed = tiny_trainer(run_dir=tmp_path / "observed")
    for point in ("after_forward", "before_val_iter", "after_epoch"):
        observed.on(point)(attach)
    observed.on("after_train_iter", every=2)(attach)
    plain.train(), observed.train()
    for one, other in zip(
        plain.run.model.parameters(), observed.run.model.parameters(), strict=True
    ):
        assert torch.equal(one, other)


@pytest.mark.parametrize("where", ["step", "hook"])
def test_nor_does_one_at_a_point_of_the_projects_own(where, tmp_path):
    class Sample(Hook):
        def after_sample(self, run):
            draw(run)

    class Fire(Hook):
        def after_train_iter(self, run):
            if where == "hook":
                run.fire("after_sample")

    def step(run, batch):
        if where == "step" and run.phase == "train":
            run.fire("after_sample")
        output = run.model(batch[0])
        return {"loss": torch.nn.functional.cross_entropy(output, batch[1]), "output": output}

    found = [
        train(
            Fire(), *hooks, step=step, setup={"points": ["after_sample"]}, run_dir=tmp_path / str(n)
        )
        for n, hooks in enumerate(([], [Sample()]))
    ]
    assert found[0] == found[1]


def test_one_that_declares_to_take_part_draws_from_the_training(tmp_path):
    class Noise(Draw):
        takes_part_in_training = True

    plain, noisy = train(run_dir=tmp_path / "plain"), train(Noise(), run_dir=tmp_path / "noisy")
    assert noisy[0] != plain[0]
    again = train(Draw().named("other"), Noise(), run_dir=tmp_path / "again")
    assert again == noisy  # The observer beside it changes nothing either.


def test_a_function_may_declare_it_too(tmp_path):
    found = []
    for takes_part in (False, True):
        trainer = tiny_trainer(run_dir=tmp_path / str(takes_part))
        trainer.on("after_train_iter", takes_part_in_training=takes_part)(draw)
        trainer.train()
        found.append(next(trainer.run.model.parameters()).tolist())
    assert found[0] != found[1]


class Sampling(Hook):
    """Keeps what it drew, so that it can be compared."""

    def __init__(self, late=False):
        self.late = late
        self.drawn = []

    def after_train_iter(self, run):
        if not self.late or run.progress.iter > 3:
            self.drawn.append((random.random(), np.random.rand(), torch.rand(1).item()))

    def after_val_iter(self, run):
        self.drawn.append((random.random(),))

    def after_epoch(self, run):
        self.drawn.append((torch.randn(1).item(),))

    def state_dict(self):
        return {"drawn": [list(some) for some in self.drawn]}

    def load_state_dict(self, state):
        self.drawn = [tuple(some) for some in state["drawn"]]


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
def test_its_random_numbers_repeat_after_a_resume(late):
    def make_trainer(**options):
        return tiny_trainer(Sampling(late), **options)

    assert_resumes_exactly(make_trainer, stop_at=(1, 2, 3, 4, 5))


def test_its_random_numbers_do_not_depend_on_other_hooks(tmp_path):
    alone, beside = Sampling(), Sampling()
    train(alone, run_dir=tmp_path / "alone")
    train(Draw(), beside, DrawSometimes(), run_dir=tmp_path / "beside")
    assert alone.drawn == beside.drawn
    assert len(set(alone.drawn)) == len(alone.drawn)  # And they are not the same every time.


@pytest.mark.slow
def test_a_hook_that_reads_the_training_data_leaves_a_resume_exact():
    def make_trainer(**options):
        return tiny_trainer(ReadData(), train_data=with_own_generator(), **options)

    assert_resumes_exactly(make_trainer, stop_at=(1, 2, 4))


def test_an_error_in_a_hook_leaves_the_generators_to_the_training(tmp_path):
    class Break(Hook):
        def after_train_iter(self, run):
            draw(run)
            raise KeyboardInterrupt

    class Before(Hook):
        priority = "HIGHEST"
        takes_part_in_training = True

        def after_train_iter(self, run):
            self.state = torch.get_rng_state()

    before = Before()
    with pytest.raises(KeyboardInterrupt):
        train(before, Break(), run_dir=tmp_path / "run")
    assert torch.equal(torch.get_rng_state(), before.state)
