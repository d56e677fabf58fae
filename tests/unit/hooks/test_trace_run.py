import pytest
import yaml
from tests.tiny import make_data, make_trainer

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, TraceRun


def read(tmp_path, name="trace.yaml"):
    return yaml.safe_load((tmp_path / name).read_text())


def test_the_trace_follows_the_run_to_its_end(tmp_path):
    class Look(Hook):
        priority = "LOWEST"

        def before_train(self, run):
            traces.append(read(tmp_path))

        def after_epoch(self, run):
            traces.append(read(tmp_path))

    traces = []
    trainer = make_trainer(
        hooks=[TraceRun(), Look()], max_epochs=2, data={"test": make_data(4)}, run_dir=tmp_path
    )
    trainer.train()
    assert [trace["epochs_done"] for trace in traces] == [0, 1, 2]
    assert {trace["exit_status"] for trace in traces} == {None}
    end = read(tmp_path)
    assert (end["exit_status"], end["status"], end["iters_done"]) == (0, "completed", 6)
    assert end["train_begin"] <= end["train_end"]
    trainer.test()
    assert read(tmp_path) == end


def test_a_failed_run_leaves_its_exit_status(tmp_path):
    def step(run, batch):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError):
        make_trainer(hooks=[TraceRun("t.yaml")], step=step, run_dir=tmp_path).train()
    end = read(tmp_path, "t.yaml")
    assert (end["exit_status"], end["reason"]) == (1, "ZeroDivisionError: mine")


def test_a_resumed_run_keeps_its_beginning(tmp_path):
    make_trainer(hooks=[TraceRun(), SaveCheckpoint()], run_dir=tmp_path).train()
    hook = TraceRun()
    trainer = make_trainer(
        hooks=[hook, SaveCheckpoint()], run_dir=tmp_path, resume=True, max_epochs=2
    )
    hook.load_state_dict({"begun": "overwritten by the checkpoint"})
    begin = read(tmp_path)["train_begin"]
    trainer.train()
    assert read(tmp_path)["train_begin"] == begin
    assert read(tmp_path)["epochs_done"] == 2


def test_the_file_stays_in_the_run_directory():
    with pytest.raises(HookError, match="a file name without directories"):
        TraceRun("../trace.yaml")
