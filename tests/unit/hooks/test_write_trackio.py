from tests.readback import trackio_points
from tests.tiny import make_classifier

from hookloop.hooks import SaveCheckpoint, WriteTrackio


def test_a_run_and_its_resume_are_one_trackio_run(tmp_path):
    def train(**options):
        hook = WriteTrackio("unit-hook", every=1)
        make_classifier(hooks=[hook, SaveCheckpoint()], run_dir=tmp_path, **options).train()
        return hook.run_id

    name = train(max_epochs=1)
    assert train(max_epochs=2, resume=True) == name == tmp_path.name
    assert {step for step, _ in trackio_points("unit-hook", name, "val/loss")} == {3, 6}
