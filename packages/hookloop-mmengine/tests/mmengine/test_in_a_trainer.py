"""What hooks find in a native Trainer: a board to draw on, log lines, the numbers of a test."""

import logging

import pytest
import torch
from tests.tiny import make_data, make_trainer

from hookloop import dialects
from hookloop.hooks import WriteMetrics

with dialects.alias("mmengine"):
    from mmengine.hooks import Hook
    from mmengine.logging import MMLogger, print_log
    from mmengine.visualization import TensorboardVisBackend


class Draw(Hook):
    """Draws through the backend of TensorBoard, in the ways that projects do."""

    def before_run(self, runner):
        backends = runner.visualizer._vis_backends.values()
        self.board = next(one for one in backends if isinstance(one, TensorboardVisBackend))
        assert runner.visualizer.get_backend("TensorboardVisBackend") is self.board

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        board = self.board.experiment
        board.add_histogram("weights", next(runner.model.parameters()), runner.iter)
        board.add_image("picture", torch.zeros(3, 4, 4), runner.iter)
        board.add_text("words", "some words", runner.iter)
        board.add_scalar("drawn/one", 2.0, runner.iter)
        self.board.add_scalar("drawn/two", 3.0, 1)
        runner.visualizer.add_scalar("drawn/three", 4.0, 1)


def test_what_a_hook_draws_through_the_visualizer_reaches_the_writers(tmp_path):
    make_trainer(hooks=[Draw(), WriteMetrics()], run_dir=tmp_path).train()
    for folder in ("images", "texts", "histograms"):
        assert list((tmp_path / folder).rglob("*.*")), folder
    lines = (tmp_path / "metrics.jsonl").read_text()
    assert all(lines.count(f"drawn/{name}") == 3 for name in ("one", "two", "three"))


def test_a_backend_of_tensorboard_has_the_writers_methods(tmp_path):
    backend = TensorboardVisBackend(str(tmp_path))
    backend.experiment.add_histogram("weights", torch.ones(3), 1)
    backend.experiment.add_scalars("group", {"a": 1.0, "b": 2.0}, 1)
    backend.experiment.add_images("several", torch.zeros(2, 3, 4, 4), 1)
    backend.experiment.flush()
    backend.close()
    assert list(tmp_path.glob("events*"))


class Ask(Hook):
    def __init__(self):
        self.tags = {}

    def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.tags["val"], _ = runner.log_processor.get_log_after_iter(runner, batch_idx, "val")

    def after_test_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.tags["test"], _ = runner.log_processor.get_log_after_iter(runner, batch_idx, "test")


def test_a_test_after_the_training_has_times_and_the_iteration():
    hook = Ask()
    trainer = make_trainer(hooks=[hook], val_data=make_data(8), data={"test": make_data(8)})
    trainer.train()
    trainer.test()
    # As in MMEngine, which adds 1 to the number of iterations.
    assert set(hook.tags["test"]) == {"data_time", "time", "iter"}
    assert hook.tags["test"]["iter"] == trainer.run.progress.iter + 1
    assert (hook.tags["val"]["epoch"], hook.tags["val"]["iter"]) == (1, 4)


def test_a_test_alone_has_no_iterations():
    hook = Ask()
    make_trainer(hooks=[hook], train_data=None, data={"test": make_data(8)}).test()
    assert hook.tags["test"]["iter"] == 0


def test_lines_of_a_logger_that_a_hook_has_kept_are_in_the_log_of_the_run(tmp_path):
    class Talk(Hook):
        def __init__(self):
            self.logger = MMLogger.get_instance("kept")

        def after_train(self, runner):
            self.logger.info("from the kept one")
            print_log("from the current one", logger="current", level=logging.WARNING)

    make_trainer(hooks=[Talk()], run_dir=tmp_path).train()
    text = (tmp_path / "run.log").read_text()
    assert text.count("from the kept one") == text.count("from the current one") == 1


def test_a_number_that_is_missing_in_the_hub_is_named_with_those_that_are_there():
    class Ask(Hook):
        def after_train(self, runner):
            runner.message_hub.get_scalar("train/times")

    with pytest.raises(KeyError, match="train/times is not found.* There are: .*train/time"):
        make_trainer(hooks=[Ask()]).train()
