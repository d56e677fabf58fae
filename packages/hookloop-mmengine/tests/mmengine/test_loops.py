"""The loops that hooks find at the runner."""

from typing import ClassVar

import pytest
from tests.mmengine.parts import Numbers, Seen, collate, make_loader
from tests.tiny import make_data, make_trainer

from hookloop.errors import HookError
from hookloop_mmengine import loops
from hookloop_mmengine.hooks import Hook
from hookloop_mmengine.loops import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    ValLoop,
    _InfiniteDataloaderIterator,
)
from hookloop_mmengine.runner import Runner


class Look(Hook):
    def before_train(self, runner):
        self.loop = runner.train_loop
        self.facts = (self.loop.epoch, self.loop.iter, self.loop.max_epochs, self.loop.max_iters)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by_epoch", "kind", "facts"),
    [(True, EpochBasedTrainLoop, (0, 0, 3, 6)), (False, IterBasedTrainLoop, (0, 0, 1, 3))],
)
def test_the_train_loop_has_mmengines_class_and_counters(run, by_epoch, kind, facts):
    look = Look()
    runner = run(look, by_epoch=by_epoch)
    assert type(look.loop) is kind
    assert look.facts == facts
    assert (look.loop._iter, look.loop._max_iters) == (runner.iter, runner.max_iters)
    assert isinstance(look.loop.dataset, Numbers)
    assert look.loop.dataloader is runner.train_dataloader
    assert (look.loop.val_interval, look.loop.val_begin) == (1, 1)


def test_the_loops_of_evaluations(run):
    runner = run(limit=1)
    assert isinstance(runner.val_loop, ValLoop)
    assert isinstance(runner.val_loop.dataset, Numbers)
    runner.test()
    assert isinstance(runner.test_loop, loops.TestLoop)


def test_another_loader_is_read_from_the_epoch_that_begins(run):
    class Switch(Hook):
        def before_train_epoch(self, runner):
            if runner.epoch == 1:
                bigger = {"dataset": Numbers(10.0), "batch_size": 2, "collate_fn": collate}
                runner.train_loop.dataloader = Runner.build_dataloader(bigger)

    seen = Seen()
    run(Switch(), seen)
    assert seen.inputs == [1, 5, 10, 50, 10, 50]


def test_another_iterator_is_read_from_the_next_iteration(run):
    class Switch(Hook):
        def before_train_iter(self, runner, batch_idx, data_batch=None):
            if runner.iter == 0:
                bigger = make_loader(10.0)
                runner.train_loop.dataloader_iterator = _InfiniteDataloaderIterator(bigger)

    seen = Seen()
    run(Switch(), seen, by_epoch=False, limit=4)
    assert seen.inputs == [1, 10, 50, 10]


def test_another_loader_alone_changes_nothing_in_a_training_by_iterations(run):
    class Switch(Hook):
        def before_train_iter(self, runner, batch_idx, data_batch=None):
            runner.train_loop.dataloader = make_loader(10.0)

    seen = Seen()
    run(Switch(), seen, by_epoch=False, limit=3)
    assert seen.inputs == [1, 5, 1]


def test_another_loader_of_the_validation(run):
    class Switch(Hook):
        inputs: ClassVar = []

        def before_val(self, runner):
            runner.val_loop.dataloader = make_loader(100.0)

        def before_val_iter(self, runner, batch_idx, data_batch=None):
            self.inputs.append(sum(float(value) for value in data_batch["inputs"]))

    hook = Switch()
    run(hook, limit=2)
    assert hook.inputs[-2:] == [100, 500]


def test_an_iterator_starts_again_at_the_end():
    endless = _InfiniteDataloaderIterator([1, 2])
    assert iter(endless) is endless
    assert [next(endless) for _ in range(5)] == [1, 2, 1, 2, 1]
    assert endless._epoch == 2


@pytest.mark.parametrize(
    ("where", "by_epoch", "iterations"),
    [
        ("after_train_iter", True, 2),
        ("after_train_epoch", True, 2),
        ("after_val_epoch", True, 2),
        ("after_train_iter", False, 1),
    ],
)
def test_a_hook_stops_the_training(run, where, by_epoch, iterations):
    class Stop(Hook):
        asked = False

    def stop(self, runner, **arguments):
        if not self.asked:
            self.asked = True
            assert not runner.train_loop.stop_training
            runner.train_loop.stop_training = True
            runner.train_loop.stop_training = True
            assert runner.train_loop.stop_training

    setattr(Stop, where, stop)

    class Validated(Hook):
        count = 0

        def after_val(self, runner):
            self.count += 1

    validated = Validated()
    runner = run(Stop(), validated, by_epoch=by_epoch)
    assert runner.iter == iterations
    assert validated.count == 1  # The validation that is due still takes place.


def test_setting_the_flag_to_false_stops_nothing(run):
    class Keep(Hook):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            runner.train_loop.stop_training = False

    assert run(Keep()).epoch == 3


def test_a_hook_runs_the_validation_loop_in_the_middle_of_an_epoch(run):
    class Now(Hook):
        metrics: ClassVar = []

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            if runner.iter == 2:
                self.metrics.append(runner.val_loop.run())

    seen, plain, hook = Seen(), Seen(), Now()
    run(hook, seen)
    run(plain)
    assert hook.metrics == [{"count/samples": 4.0}]
    assert seen.weights == plain.weights


def test_a_native_trainer_cannot_run_a_loop_inside_another(tmp_path):
    class Now(Hook):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            runner.val_loop.run()

    trainer = make_trainer(hooks=[Now()], val_data=make_data(), run_dir=tmp_path / "run")
    with pytest.raises(HookError, match=r"'now' calls run\(\) of the val loop.*run.validate\(\)"):
        trainer.train()


def test_a_hook_evaluates_by_itself_with_the_loop(run):
    class Again(Hook):
        calls = 0

        def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.calls += 1

        def after_val_epoch(self, runner, metrics=None):
            loop = runner.val_loop
            for index, batch in enumerate(loop.dataloader):
                loop.run_iter(index, batch)
            self.metrics = loop.evaluator.evaluate(len(loop.dataloader.dataset))

    again = Again()
    run(again, limit=1)
    assert again.metrics == {"count/samples": 4.0}
    assert again.calls == 4
