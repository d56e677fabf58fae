"""The file that shows the state of a training."""

import pytest
import yaml

from hookloop_dialects.emloop.hooks import TrainingTrace


def test_the_file_follows_the_training(tmp_path):
    def trace():
        return yaml.safe_load((tmp_path / "trace.yaml").read_text())

    hook = TrainingTrace(str(tmp_path))
    hook.before_training()
    began = trace()["train_begin"]
    assert trace() == {
        "train_begin": began, "train_end": None, "epochs_done": 0, "exit_status": None,
    }  # fmt: skip
    assert began is not None
    hook.after_epoch(epoch_id=3, epoch_data={})
    assert trace()["epochs_done"] == 3 and trace()["train_end"] is None
    hook.after_training(True)
    assert trace()["exit_status"] == 0 and trace()["train_end"] is not None
    assert trace()["train_begin"] == began


@pytest.mark.parametrize(("success", "status"), [(True, 0), (False, 1)])
def test_the_exit_status_tells_a_failure(success, status, tmp_path):
    TrainingTrace(str(tmp_path)).after_training(success)
    assert yaml.safe_load((tmp_path / "trace.yaml").read_text())["exit_status"] == status


def test_a_resumed_training_keeps_its_beginning(tmp_path):
    hook = TrainingTrace(str(tmp_path))
    hook.load_state_dict({"train_begin": "2020-01-01 00:00:00"})
    hook.before_training()
    assert hook.state_dict() == {"train_begin": "2020-01-01 00:00:00"}
