"""When LoggerHook logs, and which files it writes and copies."""

import json
import logging
from pathlib import Path

import pytest
from tests.mmengine.parts import Scripted, make_loader

from hookloop_mmengine.hooks import LoggerHook


@pytest.fixture
def lines(make):
    """Trains with the hook; returns the lines of the log."""

    def lines(limit=1, batch_size=1, test=False, by_epoch=True, **options):
        runner = make(
            limit=limit,
            by_epoch=by_epoch,
            train_dataloader=make_loader(batch_size=batch_size),
            default_hooks={"logger": {"type": "LoggerHook", **options}},
            log_level="INFO",
        )
        found = []
        handler = logging.Handler()
        handler.emit = lambda record: found.append(record.getMessage())
        runner.logger.addHandler(handler)
        runner.train()
        if test:
            runner.test()
        lines.runner = runner
        return found

    return lines


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"interval": 0}, ValueError, "interval must be greater than 0, not 0"),
        ({"interval": "1"}, TypeError, "interval must be an integer, not '1'"),
        ({"interval_exp_name": -1}, ValueError, "interval_exp_name must be greater"),
        ({"interval_exp_name": 1.5}, TypeError, "interval_exp_name must be an integer"),
        ({"ignore_last": 1}, TypeError, "ignore_last must be a boolean"),
        ({"keep_local": "no"}, TypeError, "keep_local must be a boolean"),
        ({"out_dir": 3}, TypeError, "out_dir must be a str or Path"),
        ({"backend_args": {"backend": "x"}}, ValueError, "out_dir should be given"),
    ],
)
def test_wrong_arguments_are_rejected(options, error, message):
    with pytest.raises(error, match=message):
        LoggerHook(**options)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"interval": 1}, [1, 2, 3, 4]),
        ({"interval": 2}, [2, 4]),
        ({"interval": 3}, [3]),
        ({"interval": 3, "ignore_last": False}, [3, 4]),
        ({"interval": 10}, [4]),  # An epoch that is shorter than the interval has a line anyway.
    ],
    ids=str,
)
def test_iterations_that_are_logged(lines, options, wanted):
    found = [line for line in lines(**options) if line.startswith("Epoch(train)")]
    assert [line.split("]")[1] for line in found] == [f"[{number}/4" for number in wanted]


def test_a_line_of_the_training_and_one_of_the_validation(lines):
    found = lines(interval=4)
    train = next(line for line in found if line.startswith("Epoch(train)"))
    assert train.startswith("Epoch(train) [1][4/4]  lr: 1.0000e-01  eta: 0:00:00  time: ")
    assert "  data_time: " in train
    assert "  loss: " in train
    val = next(line for line in found if line.startswith("Epoch(val)"))
    assert val.startswith("Epoch(val) [1][2/2]    count/samples: 4.0000  data_time: ")


def test_batches_of_a_validation_are_logged_at_the_interval(lines):
    found = [line for line in lines(interval=1) if line.startswith("Epoch(val) [1][")]
    assert len(found) == 3  # Two batches and the whole.


def test_the_name_of_the_experiment_is_logged(lines):
    found = lines(limit=2, interval_exp_name=3)
    # At the end of both epochs, and every third iteration.
    assert sum(line.startswith("Exp name: ") for line in found) == 4


def test_numbers_go_to_the_visualizer(lines):
    lines(limit=1, interval=2)
    directory = Path(lines.runner.log_dir) / "vis_data"
    rows = [json.loads(line) for line in (directory / "scalars.json").read_text().splitlines()]
    assert [row["step"] for row in rows] == [2, 4, 1]
    assert rows[0].keys() >= {"lr", "loss", "time", "data_time", "epoch", "iter"}
    assert rows[2]["count/samples"] == 4
    assert (directory / f"{lines.runner.timestamp}.json").is_file()


def test_the_step_of_a_validation_may_be_the_iteration(lines):
    lines(limit=1, interval=2, log_metric_by_epoch=False)
    path = Path(lines.runner.log_dir) / "vis_data" / "scalars.json"
    assert json.loads(path.read_text().splitlines()[-1])["step"] == 4


def test_a_test_writes_its_metrics(make):
    runner = make(
        default_hooks={"logger": {"type": "LoggerHook"}},
        test_evaluator=[Scripted({"acc": 0.5, "table": [1, 2]})],
    )
    runner.test()
    (path,) = Path(runner.log_dir).glob("*.json")
    assert json.loads(path.read_text()).items() >= {"acc": 0.5, "table": [1, 2]}.items()


@pytest.mark.parametrize("keep", [True, False])
def test_files_are_copied_at_the_end(lines, tmp_path, keep):
    lines(out_dir=str(tmp_path / "out"), keep_local=keep, test=True)
    copied = tmp_path / "out" / tmp_path.name
    stamp = lines.runner.timestamp
    assert (copied / f"{stamp}.log").is_file()
    assert (copied / "vis_data" / "scalars.json").is_file()
    assert not (copied / tmp_path.name).exists()  # MMEngine nests at the second task.
    assert (Path(lines.runner.log_dir) / "vis_data" / "scalars.json").exists() is keep


def test_only_chosen_suffixes_are_copied(lines, tmp_path):
    lines(out_dir=tmp_path / "out", out_suffix=".log")
    assert {path.suffix for path in (tmp_path / "out").rglob("*.*")} == {".log"}


def test_mmengines_lines_in_a_native_training(caplog, tmp_path):
    from tests.tiny import make_data, make_trainer

    from hookloop_mmengine import hooks

    caplog.set_level(logging.INFO, logger="hookloop")
    own = [hooks.RuntimeInfoHook(), hooks.IterTimerHook(), hooks.LoggerHook(interval=1)]
    make_trainer(hooks=own, val_data=make_data(), max_epochs=2, run_dir=tmp_path / "run").train()
    assert "Epoch(train) [1][1/3]  lr: 5.0000e-02" in caplog.text
    assert "Epoch(val) [2][3/3]    loss: " in caplog.text
