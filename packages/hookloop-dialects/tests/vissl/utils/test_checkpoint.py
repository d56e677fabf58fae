"""Files in VISSL's own form."""

import pytest
import torch

from hookloop.errors import CheckpointError
from hookloop_dialects.vissl.utils import checkpoint


@pytest.mark.parametrize(
    ("is_last", "mode", "name"),
    [
        (False, "phase", "model_phase3.torch"),
        (True, "phase", "model_final_checkpoint_phase3.torch"),
        (False, "iteration", "model_iteration3.torch"),
    ],
)
def test_names_are_vissls_and_the_newest_has_a_link(tmp_path, is_last, mode, name):
    content = {"iteration": 7, "weight": torch.ones(1)}
    for number in (2, 3):
        writer = checkpoint.CheckpointWriter(str(tmp_path), is_last, mode, number, "disk")
        writer.save_consolidated_checkpoint(content)
    assert (tmp_path / "checkpoint.torch").readlink().name == name
    found = checkpoint.CheckpointLoader.load_and_broadcast_checkpoint(
        str(tmp_path), f"{tmp_path}/checkpoint.torch", "cpu"
    )
    assert (found["iteration"], found["type"]) == (7, "consolidated")


def test_when_to_save_is_counted_from_zero():
    saved = [n for n in range(5) if checkpoint.is_checkpoint_phase(n, 3, n, 5, "phase")]
    assert saved == [0, 3, 4]
    assert not checkpoint.is_checkpoint_phase(4, 3, 4, 5, "iteration")


def test_the_folder_is_that_of_the_config(tmp_path):
    config = {"CHECKPOINT": {"DIR": f"{tmp_path}/a", "APPEND_DISTR_RUN_ID": True}}
    assert checkpoint.get_checkpoint_folder(config) == f"{tmp_path}/a"
    config["DISTRIBUTED"] = {"NUM_NODES": 2, "RUN_ID": "r"}
    assert checkpoint.get_checkpoint_folder(config) == f"{tmp_path}/a/r"
    assert (tmp_path / "a" / "r").is_dir()


def test_what_is_not_offered_says_so(tmp_path):
    writer = checkpoint.CheckpointWriter(str(tmp_path), False, "phase", 0)
    with pytest.raises(CheckpointError, match="SaveCheckpoint"):
        writer.save_sharded_checkpoint({}, 0, 2)
    with pytest.raises(CheckpointError, match="not 'disk'"):
        checkpoint.CheckpointWriter(str(tmp_path), False, "phase", 0, "cloud")
    with pytest.raises(CheckpointError, match="no checkpoint 'no.torch'"):
        checkpoint.CheckpointLoader.load_and_broadcast_init_weights("no.torch", "cpu")
