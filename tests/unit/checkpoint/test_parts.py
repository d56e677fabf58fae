import copy
from collections import OrderedDict

import pytest
import torch

from hookloop.checkpoint.shards.parts import check_rest, nested, put_back, split
from hookloop.checkpoint.state.compare import compare


def make() -> dict[str, object]:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    moments = {"step": torch.tensor(2.0), "exp_avg": torch.ones(2)}
    return {
        "model": OrderedDict(model.state_dict()),
        "optimizers": {"main": {"state": {"0.weight": moments}, "param_groups": [{"lr": 0.1}]}},
        "rng": [torch.ones(3), (1, "a")],
    }


def test_tensors_are_taken_out_and_put_back() -> None:
    rest, tensors, paths = split(make())
    assert list(rest["model"]) == [] and rest["rng"][1] == (1, "a")
    assert rest["optimizers"]["main"]["state"]["0.weight"] == {"step": torch.tensor(2.0)}
    assert "optimizers.main.state.0.weight.exp_avg" in tensors
    assert paths["model.0.weight"] == ("model", "0.weight")
    rest = copy.deepcopy(rest)
    for key, path in paths.items():
        put_back(rest, path, tensors[key])
    assert not compare(rest, make())


def test_the_versions_of_a_models_parts_stay() -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    rest, _, _ = split({"model": model.state_dict()})
    assert rest["model"]._metadata["0"] == {"version": 2}


def test_torch_finds_the_same_keys() -> None:
    _, tensors, paths = split(make())
    tree = nested(tensors, paths)
    assert tree["model"]["0.weight"] is tensors["model.0.weight"]
    assert list(tree) == ["model", "optimizers"]


@pytest.mark.parametrize(
    "path", [("model", "w"), ("gone", "w"), ("model", "w", "x"), ("list", 5), ("list", 0, 1), ()]
)
def test_a_place_that_is_not_there_is_rejected(path) -> None:
    state: dict[str, object] = {"model": {"w": 1}, "list": [1]}
    with pytest.raises(ValueError, match="no place|not enough"):
        put_back(state, path, torch.ones(1))


@pytest.mark.parametrize("content", [[], {"state": {}}, {"state": {}, "paths": {"a": [1.5]}}])
def test_a_file_of_something_else_is_rejected(content: object) -> None:
    with pytest.raises(ValueError, match="is not what was saved"):
        check_rest(content)
