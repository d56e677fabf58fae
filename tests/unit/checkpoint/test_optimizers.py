import copy
from pathlib import Path

import pytest
import torch
from tests.unit.checkpoint.sharding import run_ranks
from torch import nn

from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.state.optimizers import (
    is_by_name,
    load_optimizer_state,
    numbered_state,
    optimizer_state,
    parameter_names,
)
from hookloop.errors import CheckpointError


def make(order: int = 1) -> tuple[nn.Module, torch.optim.Optimizer, nn.Parameter]:
    """A model with tied weights and a frozen part, and a parameter outside of it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 1))
    model[1].weight = model[0].weight
    model[2].requires_grad_(False)
    outside = nn.Parameter(torch.ones(3))
    groups = [
        {"params": [model[0].weight, model[2].weight][::order], "lr": 0.5},
        {"params": [model[0].bias, model[1].bias, outside]},
    ]
    return model, torch.optim.Adam(groups, lr=0.1), outside


def train(model: nn.Module, optimizer: torch.optim.Optimizer, outside: nn.Parameter) -> None:
    for _ in range(3):
        (model(torch.ones(4, 2)).square().mean() + outside.square().sum()).backward()
        optimizer.step()
        optimizer.zero_grad()


def test_parameters_have_the_names_of_the_model() -> None:
    model, optimizer, outside = make()
    train(model, optimizer, outside)
    assert parameter_names(model, optimizer) == [
        ["0.weight", "2.weight"],
        ["0.bias", "1.bias", "optimizer.1.2"],
    ]
    state = optimizer_state(model, optimizer)
    assert list(state["state"]) == ["0.weight", "0.bias", "1.bias", "optimizer.1.2"]  # One frozen.
    assert [group["lr"] for group in state["param_groups"]] == [0.5, 0.1]
    assert is_by_name(state) and not is_by_name(optimizer.state_dict())


def test_either_form_is_loaded() -> None:
    model, optimizer, outside = make()
    train(model, optimizer, outside)
    for form in (optimizer_state(model, optimizer), optimizer.state_dict()):
        other, fresh, _ = make()
        load_optimizer_state(other, fresh, copy.deepcopy(form))
        assert not compare(fresh.state_dict(), optimizer.state_dict())


def test_with_names_the_order_in_a_group_may_change() -> None:
    model, optimizer, outside = make()
    train(model, optimizer, outside)
    other, fresh, _ = make(order=-1)
    load_optimizer_state(other, fresh, optimizer_state(model, optimizer))
    weights = optimizer.state[model[0].weight], fresh.state[other[0].weight]
    assert torch.equal(weights[0]["exp_avg"], weights[1]["exp_avg"])


def test_another_optimizer_is_rejected_with_the_name() -> None:
    model, optimizer, outside = make()
    train(model, optimizer, outside)
    state = optimizer_state(model, optimizer)
    fewer = torch.optim.Adam(model.parameters())
    with pytest.raises(CheckpointError, match="has 1 groups of parameters; 2 were saved"):
        load_optimizer_state(model, fewer, state)
    groups = [{"params": [model[0].weight]}, {"params": [model[0].bias, model[1].bias, outside]}]
    with pytest.raises(CheckpointError, match="Group 0.*'2.weight'"):
        load_optimizer_state(model, torch.optim.Adam(groups), state)
    state["param_groups"][1]["params"][0] = "0.bios"
    with pytest.raises(CheckpointError, match="Group 1.*'0.bias'.*'0.bios'"):
        load_optimizer_state(model, optimizer, state)


def test_an_optimizer_with_a_form_of_its_own_keeps_it() -> None:
    class Wrapped(torch.optim.SGD):
        def state_dict(self) -> dict[str, object]:
            return {"inner": 1}

    model = nn.Linear(1, 1)
    optimizer = Wrapped(model.parameters())
    assert optimizer_state(model, optimizer) == {"inner": 1}
    assert numbered_state(model, optimizer, {"inner": 1}) == {"inner": 1}


@pytest.mark.slow
def test_a_state_of_whole_tensors_is_loaded_into_shards(tmp_path: Path) -> None:
    run_ranks(
        tmp_path,
        3,
        """
        import copy
        from hookloop.checkpoint.state.compare import compare
        from hookloop.checkpoint.state.optimizers import load_optimizer_state, optimizer_state

        plain, trained = build(steps=3, shard=False)
        model, optimizer = build()
        load_optimizer_state(model, optimizer, copy.deepcopy(trained.state_dict()))
        state = optimizer_state(model, optimizer)
        assert all(hasattr(v["exp_avg"], "placements") for v in state["state"].values())
        whole = {n: {k: full(v) for k, v in one.items()} for n, one in state["state"].items()}
        assert not compare(whole, optimizer_state(plain, trained)["state"])
        # The shards are what a training of the same steps has, too.
        model, optimizer = build(steps=3)
        for name, one in optimizer_state(model, optimizer)["state"].items():
            torch.testing.assert_close(full(one["exp_avg"]), whole[name]["exp_avg"])
        """,
    )
