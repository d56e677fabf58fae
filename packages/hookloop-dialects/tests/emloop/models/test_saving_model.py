"""The model as emloop's hooks know it."""

import pytest
import torch
from tests.emloop.looking import train

from hookloop_dialects.emloop import hooks
from hookloop_dialects.emloop.models import SavingModel


def test_the_model_that_a_hook_was_given_learns_to_save(tmp_path):
    model = torch.nn.Linear(4, 1)
    hook = hooks.SaveEvery(model=model, n_epochs=2)
    train(tmp_path, hook, model=model, max_epochs=4)
    names = sorted(path.name for path in (tmp_path / "run").glob("model_*"))
    assert names == ["model_2.pth", "model_4.pth"]
    saved = torch.load(tmp_path / "run" / "model_4.pth", weights_only=True)
    assert torch.equal(saved["model"]["weight"], model.weight)


def test_everything_else_is_the_models_own(tmp_path):
    trainer = train(tmp_path, model=torch.nn.Linear(4, 1))
    model = SavingModel(trainer.run, "mine")
    inputs = torch.ones(2, 4)
    assert model.in_features == 4
    assert torch.equal(model(inputs), trainer.run.model(inputs))
    with pytest.raises(AttributeError, match="no_such_thing"):
        model.no_such_thing  # noqa: B018 - the access is what is tested


def test_save_returns_the_path_in_the_run_directory(tmp_path):
    trainer = train(tmp_path)
    path = SavingModel(trainer.run, "mine").save("best")
    assert path == str(tmp_path / "run" / "model_best.pth")
