import pytest
from tests.readback import wandb_points
from tests.tiny import make_classifier

from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, WriteWandb


@pytest.mark.slow
def test_a_run_and_its_resume_are_one_wandb_run(tmp_path):
    def train(**options):
        hook = WriteWandb("digits", every=1, mode="offline")
        make_classifier(hooks=[hook, SaveCheckpoint()], run_dir=tmp_path, **options).train()
        return hook.run_id

    assert train(max_epochs=1) == train(max_epochs=2, resume=True)
    assert len(list(tmp_path.glob("wandb/offline-run-*"))) == 2
    assert {step for step, _ in wandb_points(tmp_path, "val/loss")} == {3, 6}


def test_an_unknown_mode_is_rejected():
    with pytest.raises(HookError, match="'offline'"):
        WriteWandb(mode="ofline")


@pytest.fixture
def no_key(tmp_path, monkeypatch):
    """As on a machine where nobody has logged in."""
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    return tmp_path / "netrc"


def test_training_does_not_start_without_a_key(tmp_path, no_key):
    trainer = make_classifier(hooks=[WriteWandb("digits")], run_dir=tmp_path / "run")
    with pytest.raises(HookError, match="API.*mode='offline'"):
        trainer.check()
    with pytest.raises(HookError, match="there is no API key"):
        trainer.train()
    assert trainer.run.progress.iter == 0


def test_the_key_is_found_in_the_environment_and_in_wandbs_file(no_key, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "0123456789" * 4)
    WriteWandb("digits").check_setup()
    monkeypatch.delenv("WANDB_API_KEY")
    WriteWandb("digits", mode="offline").check_setup()
    WriteWandb("digits", mode="disabled").check_setup()
