"""iMIX's loggers: text, JSON and TensorBoard."""

import json
import logging

import pytest
import torch
from tests.imix.tracing import train
from tests.readback import tensorboard_points
from tests.tiny import make_trainer

from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.imix import EngineFacade, HookBase, LogBufferStorage, build_hook, engine
from hookloop_dialects.imix.engine.hooks.log_writers import (
    PERIOD,
    LogBufferWriter,
    period_of,
    write_metrics,
)


def test_json_lines_come_at_the_period_within_epochs(tmp_path):
    logger = engine.hooks.PeriodicLogger([engine.hooks.JSONLoggerHook()], 2)
    train(tmp_path, engine.hooks.IterationTimerHook(), logger, max_epochs=2)
    lines = (tmp_path / "run" / "training_status.json").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [(line["epoch"], line["inner-iteration"]) for line in found] == [(0, 1), (1, 4)]
    assert {"loss", "iter_time"} <= set(found[0])


def test_a_logger_by_itself_writes_at_the_period_of_the_config(tmp_path):
    config = {"log_config": {"period": 3}}
    train(tmp_path, build_hook({"type": "JSONLoggerHook"}), max_iters=5, setup={"config": config})
    lines = (tmp_path / "run" / "training_status.json").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [2, 4]


def test_the_line_on_the_terminal_tells_losses_and_the_time_left(tmp_path, caplog):
    hooks = [engine.hooks.IterationTimerHook(), engine.hooks.PeriodicLogger(None, 3)]
    with caplog.at_level(logging.INFO, "imix"):
        train(tmp_path, *hooks)
    assert caplog.messages[0].startswith("epoch: 0  iter: 3  loss: ")
    assert "eta: 0:00:00" in caplog.messages[0]
    assert caplog.messages[-1].startswith("3 iterations in ")


def json_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("config", "period"),
    [({}, PERIOD), ({"log_config": {"period": 3}}, 3), ({"log_config": {"period": "x"}}, PERIOD)],
)
def test_the_period_is_the_configs_or_the_default(config, period):
    assert period_of(EngineFacade(make_trainer(setup={"config": config}).run)) == period


def test_json_numbers_are_medians_with_sorted_keys(tmp_path):
    class Put(HookBase):
        def after_train_iter(self):
            self.trainer.log_buffer.put_scalar("zebra", [1, 9, 2][self.trainer.iter])
            self.trainer.log_buffer.put_scalar("ape", self.trainer.iter, smoothing_hint=False)

    file = tmp_path / "mine.json"
    logger = engine.hooks.PeriodicLogger([engine.hooks.JSONLoggerHook(str(file), window_size=3)], 3)
    train(tmp_path, Put(), logger)
    (line,) = json_lines(file)
    assert (line["zebra"], line["ape"]) == (2, 2)
    assert list(line) == sorted(line)


def test_a_resumed_run_continues_the_file_and_a_new_one_empties_it(tmp_path):
    def run(epochs, **options):
        logger = engine.hooks.PeriodicLogger([engine.hooks.JSONLoggerHook()], 3)
        train(tmp_path, logger, SaveCheckpoint(), max_epochs=epochs, **options)
        lines = json_lines(tmp_path / "run" / "training_status.json")
        return [line["epoch"] for line in lines]

    assert run(1) == [0]
    assert run(2, resume=True) == [0, 1]


def test_tensorboard_gets_scalars_pictures_and_distributions(tmp_path):
    class Put(HookBase):
        def after_train_iter(self):
            self.trainer.log_buffer.put_scalar("score", self.trainer.iter, smoothing_hint=False)
            self.trainer.log_buffer.put_image("picture", torch.zeros(3, 4, 4))
            self.trainer.log_buffer.put_histogram("weights", torch.ones(5))

        def after_train(self):
            buffer = self.trainer.log_buffer
            left.append((len(buffer.vis_data), len(buffer.histograms)))

    left = []
    logger = engine.hooks.PeriodicLogger([engine.hooks.TensorboardLoggerHook()], 1)
    train(tmp_path, Put(), logger)
    points = tensorboard_points(tmp_path / "run" / "runs", "score")
    assert points == [(0, 0), (1, 1), (2, 2)]
    assert left == [(0, 0)]  # What was written is forgotten.


def test_loggers_by_themselves_write_at_the_end_of_epochs_that_are_shorter_than_the_period(
    tmp_path,
):
    kinds = ("TensorboardLoggerHook", "JSONLoggerHook")
    train(tmp_path, *(build_hook({"type": kind}) for kind in kinds), max_epochs=2)
    points = tensorboard_points(tmp_path / "run" / "runs", "loss")
    assert [step for step, _ in points] == [2, 5]
    lines = json_lines(tmp_path / "run" / "training_status.json")
    assert [line["inner-iteration"] for line in lines] == [2, 5]


@pytest.mark.parametrize("kind", ["TensorboardLoggerHook", "JSONLoggerHook"])
def test_a_periodic_logger_that_writes_no_iteration_is_reported_once(tmp_path, caplog, kind):
    hook = engine.hooks.PeriodicLogger([getattr(engine.hooks, kind)()], 50)
    train(tmp_path, hook, max_epochs=3)
    (warning,) = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert warning.startswith(f"{kind} has written no iteration: its period is 50 ")


def test_a_logger_has_to_write():
    with LogBufferStorage(), pytest.raises(NotImplementedError):
        LogBufferWriter().write()
    LogBufferWriter().close()


def test_a_buffer_of_no_run_has_no_directory():
    writers = [engine.hooks.JSONLoggerHook(), engine.hooks.TensorboardLoggerHook()]
    for writer in writers:
        with LogBufferStorage(), pytest.raises(HookError, match="belongs to no run"):
            writer.write()


def test_metrics_are_put_without_the_loss():
    with LogBufferStorage(start_iter=3) as buffer:
        write_metrics({"loss": 1.0, "total_loss": torch.tensor(2.0), "text": "x"})
    assert buffer.scalars == {"total_loss": 2.0}
    assert buffer.history("total_loss").values() == [(2.0, 3)]


def test_nothing_is_opened_before_the_first_line(tmp_path):
    train(tmp_path, engine.hooks.PeriodicLogger([engine.hooks.JSONLoggerHook()], 50))
    assert not (tmp_path / "run" / "training_status.json").exists()
