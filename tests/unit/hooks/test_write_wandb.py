import pytest
from tests.readback import wandb_points
from tests.tiny import make_classifier

from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, WriteWandb


def test_a_run_and_its_resumption_are_one_wandb_run(tmp_path):
    def train(**options):
        hook = WriteWandb("digits", every=1, mode="offline")
        make_classifier(hooks=[hook, SaveCheckpoint()], run_dir=tmp_path, **options).train()
        return hook.state_dict()["run_id"]

    assert train(max_epochs=1) == train(max_epochs=2, resume=True)
    assert len(list(tmp_path.glob("wandb/offline-run-*"))) == 2
    assert {step for step, _ in wandb_points(tmp_path, "val/loss")} == {3, 6}


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(HookError, match="Did you mean 'offline'"):
        WriteWandb(mode="ofline")
