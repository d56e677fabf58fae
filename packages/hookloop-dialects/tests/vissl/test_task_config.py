"""The config of a task, and the model that it stands for."""

import pytest
import torch

from hookloop.errors import ModelError
from hookloop_dialects.vissl.task_config import TaskConfig, build_from


def bound(model):
    config = TaskConfig({"MODEL": {"TRUNK": {"DROP": 0.1}}, "LOSS": {"name": "x"}})
    config.bind(model)
    return config


def test_the_section_of_the_model_stands_for_it():
    model = torch.nn.Linear(2, 1)
    made = build_from(bound(model)["MODEL"])
    assert made is not model and torch.equal(made.weight, model.weight)
    assert made.training and made.weight.requires_grad


def test_a_change_of_the_config_is_reported_because_the_copy_lacks_it(caplog):
    config = bound(torch.nn.Linear(2, 1))
    build_from(config["MODEL"])
    assert not caplog.text
    config["MODEL"]["TRUNK"]["DROP"] = 0.0
    build_from(config["MODEL"])
    assert "without that change" in caplog.text and "register_model" in caplog.text


@pytest.mark.parametrize("section", [{"TRUNK": {}}, bound(None)["MODEL"]])
def test_another_config_is_rejected(section):
    with pytest.raises(ModelError, match="register_model"):
        build_from(section)


def test_a_copy_has_new_statistics_as_a_model_that_is_built():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    model(torch.randn(8, 2) + 5)
    made = build_from(bound(model)["MODEL"])
    assert made[0].num_batches_tracked == 0 and made[0].running_mean.tolist() == [0, 0]
    assert model[0].num_batches_tracked == 1
