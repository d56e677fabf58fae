"""Checkpoints under ClassyVision's names."""

import os

import pytest
from tests.tiny import make_data, make_trainer
from tests.vissl.phases import models, train

from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.vissl.classy_vision import hooks as classy


@pytest.mark.parametrize(
    ("options", "phases"),
    [
        ({}, [0, 2, 4, 6, 8]),
        ({"checkpoint_period": 2}, [2, 6]),
        ({"phase_types": ["train", "test"], "checkpoint_period": 3}, [2, 5, 8]),
        ({"phase_types": ["test"]}, [1, 3, 5, 7, 9]),
    ],
)
def test_classy_checkpoints_are_written_after_the_phases_they_name(options, phases, tmp_path):
    folder = tmp_path / "saved"
    folder.mkdir()
    train(tmp_path, classy.CheckpointHook(str(folder), **options))
    assert models(folder) == sorted(
        ["checkpoint.torch", *(f"model_phase-{phase}_end.torch" for phase in phases)]
    )


def test_a_classy_checkpoint_needs_its_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        train(tmp_path, classy.CheckpointHook(str(tmp_path / "nowhere")))


def test_the_newest_is_one_file_under_two_names(tmp_path):
    train(tmp_path, classy.CheckpointHook(str(tmp_path)), max_epochs=1)
    newest, named = tmp_path / "checkpoint.torch", tmp_path / "model_phase-0_end.torch"
    assert newest.read_bytes() == named.read_bytes()
    assert os.path.samefile(newest, named)


def test_a_test_alone_saves_nothing_and_needs_no_directory(tmp_path):
    hook = classy.CheckpointHook(str(tmp_path / "nowhere"), phase_types=["test"])
    make_trainer(hooks=[hook], data={"test": make_data(4)}, run_dir=tmp_path / "run").test()
    assert hook.state.phase_counter == 0


def test_a_resumed_run_continues_to_count_phases(tmp_path):
    def run(epochs, **options):
        hook = classy.CheckpointHook(str(tmp_path), checkpoint_period=2)
        train(tmp_path, hook, SaveCheckpoint(), max_epochs=epochs, **options)
        return models(tmp_path)

    assert run(1) == []
    assert run(2, resume=True) == ["checkpoint.torch", "model_phase-2_end.torch"]
