import json

import pytest
from tests.readback import comet_points
from tests.tiny import make_classifier

from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, WriteComet


@pytest.mark.slow
def test_a_run_and_its_resume_are_one_experiment(tmp_path):
    def train(**options):
        hook = WriteComet("digits", every=1, mode="offline")
        trainer = make_classifier(hooks=[hook, SaveCheckpoint()], run_dir=tmp_path, **options)
        assert not trainer.train().disabled
        return hook.run_id

    assert train(max_epochs=1) == train(max_epochs=2, resume=True)
    comet = tmp_path / "comet"
    assert len(list(comet.glob("*.zip"))) == 2
    assert [step for step, _ in comet_points(comet, "val/loss")] == [3, 6]
    assert [step for step, _ in comet_points(comet, "train/loss")] == [1, 2, 3, 4, 5, 6]
    assert (
        json.loads((tmp_path / "trackers.json").read_text())["write_comet"]["target"] == "/digits"
    )


def test_an_unknown_mode_is_rejected():
    with pytest.raises(HookError, match="'offline'"):
        WriteComet(mode="ofline")
