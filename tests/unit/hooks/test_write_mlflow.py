import pytest
from tests.readback import mlflow_client, mlflow_points
from tests.tiny import make_classifier

from hookloop import Hook
from hookloop.hooks import SaveCheckpoint, WriteMLflow

pytestmark = pytest.mark.slow  # It creates databases.


def test_a_run_and_its_resume_are_one_mlflow_run(tmp_path):
    def train(**options):
        hook = WriteMLflow(every=1, experiment="digits")
        make_classifier(
            hooks=[hook, SaveCheckpoint()],
            run_dir=tmp_path,
            setup={"config": {"seed": 1}},
            **options,
        ).train()
        return hook.run_id

    run_id = train(max_epochs=1)
    assert train(max_epochs=2, resume=True) == run_id
    store = tmp_path / "mlruns"
    assert {step for step, _ in mlflow_points(store, run_id, "val/loss")} == {3, 6}
    run = mlflow_client(store).get_run(run_id)
    assert (run.data.params, run.info.status) == ({"seed": "1"}, "FINISHED")
    assert run.info.run_name == tmp_path.name


def test_a_failed_run_is_marked_as_failed(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("boom")

    hook = WriteMLflow()
    with pytest.raises(RuntimeError, match="boom"):
        make_classifier(hooks=[Fail(), hook], run_dir=tmp_path).train()
    run_id = hook.run_id
    assert mlflow_client(tmp_path / "mlruns").get_run(run_id).info.status == "FAILED"
