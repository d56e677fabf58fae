"""Files in ClassyVision's own form."""

from tests.tiny import make_trainer

from hookloop_dialects.vissl import Task
from hookloop_dialects.vissl.classy_vision.generic import classy_checkpoints as files


def test_the_state_of_a_task_is_written_and_read_back(tmp_path):
    task = Task(make_trainer().run)
    content = files.get_checkpoint_dict(task, {"lr": 0.1})
    path = files.save_checkpoint(str(tmp_path / "new"), content)
    assert path == f"{tmp_path}/new/checkpoint.torch"
    found = files.load_checkpoint(str(tmp_path / "new"))
    assert found["input_args"] == {"lr": 0.1}
    state = found["classy_state_dict"]
    assert (state["phase_idx"], state["hooks"], state["losses"]) == (-1, {}, [])


def test_without_a_file_there_is_no_checkpoint(tmp_path):
    assert files.load_checkpoint(str(tmp_path)) is None
    assert files.load_checkpoint("") is None
    assert files.load_and_broadcast_checkpoint(str(tmp_path / "no.torch")) is None


def test_nested_values_get_joined_names(tmp_path):
    nested = {"top_1": {0: 0.5, "res5": 0.25}, "n": 3}
    assert files.flatten_dict(nested, "a", "/") == {
        "a/top_1/0": 0.5,
        "a/top_1/res5": 0.25,
        "a/n": 3,
    }
