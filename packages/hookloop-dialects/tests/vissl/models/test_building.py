"""A second model for a hook."""

import pytest
import torch
from tests.tiny import make_trainer

from hookloop.errors import ModelError
from hookloop_dialects.vissl import Task
from hookloop_dialects.vissl.models import building


def test_the_models_config_gives_a_copy_and_a_registered_name_its_model(monkeypatch):
    monkeypatch.setattr(building, "MODEL_REGISTRY", {})
    task = Task(make_trainer().run)
    copied = building.build_model(task.config["MODEL"], task.config["OPTIMIZER"])
    assert torch.equal(copied[0].weight, task.model[0].weight) and copied is not task.model

    @building.register_model("mine")
    class Mine(torch.nn.Linear):
        def __init__(self, model_config, optimizer_config):
            super().__init__(model_config["SIZE"], 1)

    assert building.build_model({"BASE_MODEL_NAME": "mine", "SIZE": 7}).in_features == 7
    assert building.get_model("mine") is Mine
    with pytest.raises(ModelError, match="'mime'.*'mine'"):
        building.get_model("mime")
    with pytest.raises(ValueError, match="already"):
        building.register_model("mine")(torch.nn.Linear)
