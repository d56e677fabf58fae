import pytest
import torch
from tests.tiny import make_data, make_trainer

from hookloop.errors import HookError
from hookloop.hooks import EmptyCache


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ({}, 4),  # after two epochs of training and two validations
        ({"before_epoch": True}, 8),
        ({"after_iter": True, "after_epoch": False}, 6 + 2),
    ],
)
def test_it_releases_where_asked(options, times, tmp_path):
    hook = EmptyCache(**options)
    make_trainer(hooks=[hook], max_epochs=2, val_data=make_data(4), run_dir=tmp_path).train()
    assert hook.count == times


def test_on_a_gpu_torch_is_asked(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: asked.append(1))
    trainer = make_trainer(hooks=[EmptyCache()], run_dir=tmp_path)
    trainer.train()
    assert not asked
    trainer.run.device = torch.device("cuda")
    trainer._planner.hooks[0].after_train_epoch(trainer.run)
    assert asked


def test_a_hook_that_does_nothing_is_rejected():
    with pytest.raises(HookError, match="would do nothing"):
        EmptyCache(after_epoch=False)
