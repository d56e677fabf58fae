import pytest
import torch
from tests.tiny import make_trainer, record

from hookloop.errors import HookError
from hookloop.hooks import DetectAnomaly


def test_it_is_on_in_its_range_and_off_afterwards(tmp_path):
    seen, calls = record(["after_forward"], lambda run: torch.is_anomaly_enabled())
    make_trainer(
        hooks=[DetectAnomaly(begin=2, end=4), seen], max_epochs=2, run_dir=tmp_path
    ).train()
    assert [on for _, on in calls] == [False, False, True, True, False, False]
    assert not torch.is_anomaly_enabled()


def test_a_backward_pass_with_nan_fails_and_detection_ends_with_the_run(tmp_path):
    def step(run, batch):
        return (run.model(batch[0]) * 0).sqrt().sum()

    trainer = make_trainer(hooks=[DetectAnomaly()], step=step, run_dir=tmp_path)
    with pytest.warns(UserWarning, match="forward call"), pytest.raises(RuntimeError, match="nan"):
        trainer.train()
    assert not torch.is_anomaly_enabled()


@pytest.mark.parametrize("arguments", [(-1,), (5, 5), (5, 3)])
def test_a_range_that_is_not_one_is_rejected(arguments):
    with pytest.raises(HookError, match="not a range of iterations"):
        DetectAnomaly(*arguments)
