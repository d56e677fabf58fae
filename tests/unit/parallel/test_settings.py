import pytest
import torch

from hookloop.errors import HookloopError
from hookloop.parallel.settings import Parallel


def test_nothing_given_means_auto():
    assert Parallel.parse(None) == Parallel("auto")
    assert not Parallel.parse("replicated").is_sharded
    assert Parallel.parse("sharded").is_sharded


def test_a_mapping_sets_several_things():
    settings = Parallel.parse(
        {
            "strategy": "sharded",
            "mesh": {"replicate": 2, "shard": 4},
            "shard": ["Block", torch.nn.Linear],
            "precision": {"param": "bf16", "reduce": "fp32"},
            "timeout": "2 min",
        }
    )
    assert settings.mesh == {"replicate": 2, "shard": 4}
    assert settings.shard == ("Block", "torch.nn.modules.linear.Linear")
    assert settings.timeout == 120.0
    assert Parallel.parse(settings) is settings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("shraded", "'shraded' is not a strategy. Did you mean 'sharded'"),
        ({"strateg": "sharded"}, "there is no setting 'strateg'. Did you mean 'strategy'"),
        ({"timeout": "3 epochs"}, "timeout is '3 epochs': write seconds"),
        ({"timeout": True}, "timeout is True"),
        ({"timeout": 0}, "timeout is 0"),
        ({"unused_parameters": "yes"}, "unused_parameters is 'yes': write true or false"),
        ({"mesh": [2, 4]}, "mesh is \\[2, 4\\]: write it as"),
        ({"mesh": {"shard": 0}}, "write it as"),
        ({"shard": 3}, "shard is 3: write a list of class names"),
        ({"precision": {"param": "int8"}}, "'int8' must be one of fp32, bf16, fp16"),
        ({"precision": "bf16"}, "precision is 'bf16': write it as"),
        (7, "7 must be the name of a strategy"),
    ],
)
def test_what_cannot_be_meant_is_rejected(given, message):
    with pytest.raises(HookloopError, match=message) as caught:
        Parallel.parse(given)
    assert caught.value.argument == "parallel"
