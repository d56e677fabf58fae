import pytest
from tests.readback import clearml_points
from tests.tiny import make_classifier

from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, WriteClearML


@pytest.mark.slow
def test_a_run_and_its_resume_are_one_task(tmp_path):
    def train(**options):
        hook = WriteClearML("digits", every=1, mode="offline")
        trainer = make_classifier(hooks=[hook, SaveCheckpoint()], run_dir=tmp_path, **options)
        assert not trainer.train().disabled
        return hook.run_id

    assert train(max_epochs=1) == train(max_epochs=2, resume=True)
    clearml = tmp_path / "clearml"
    assert [step for step, _ in clearml_points(clearml, "val/loss")] == [3, 6]
    assert [step for step, _ in clearml_points(clearml, "train/loss")] == [1, 2, 3, 4, 5, 6]


def test_an_unknown_mode_is_rejected():
    with pytest.raises(HookError, match="'offline'"):
        WriteClearML(mode="ofline")
