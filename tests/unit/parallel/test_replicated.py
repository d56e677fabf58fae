"""Gradients and numbers that replicas average, without a trainer around them."""

import pytest
import torch
import torch.distributed as dist
from tests.ranks import on_ranks
from torch import nn

from hookloop.errors import ModelError
from hookloop.parallel.replicated import SLOTS, Replica

pytestmark = pytest.mark.slow  # Ranks are processes.


def connected(function, size):
    def call():
        dist.init_process_group("gloo")
        return function(dist.get_rank())

    return on_ranks(call, size)


def model_and_inputs(rank):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    return model, torch.randn(3, 5, 3, dtype=torch.float64)[rank]


def gradients(model):
    return [one.grad for one in model.parameters()]


@pytest.mark.parametrize("finds_unused", [False, True])
@pytest.mark.parametrize("is_joined", [False, True])
def test_gradients_and_numbers_are_the_mean_over_ranks(finds_unused, is_joined):
    def average(rank):
        model, inputs = model_and_inputs(rank)
        team = Replica(model, lambda: [*model.parameters()], finds_unused=finds_unused)
        for _ in range(2):  # The second time like the first.
            model.zero_grad()
            team.clear()
            team.start(synchronizes=True)
            loss = team.forward(lambda x: model(x).mean(), inputs)
            numbers = [torch.tensor(1.0), torch.tensor(float(rank))]
            if is_joined:  # Scaled on the way, as a loss of half precision is.
                (team.averaged_loss(loss, rank + 0.5, numbers) * 1.0).backward()
            else:
                team.backward(loss, rank + 0.5, numbers)
            team.check_complete()
        return gradients(model), team.mean_numbers

    of_ranks = connected(average, 3)
    model, _ = model_and_inputs(0)
    for rank in range(3):
        _, inputs = model_and_inputs(rank)
        (model(inputs).mean() * (rank + 0.5) / 3).backward()
    for grads, carried in of_ranks:
        for ours, theirs in zip(grads, gradients(model), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
        assert carried.shape == (SLOTS,)
        assert carried[:2].tolist() == pytest.approx([1.5, (1.5 + 2 * 2.5) / 3])
        assert not carried[2:].any()
        assert all(torch.equal(*pair) for pair in zip(grads, of_ranks[0][0], strict=True))


def test_what_a_loss_is_scaled_with_does_not_scale_the_numbers():
    def average(rank):
        model, inputs = model_and_inputs(rank)
        team = Replica(model, lambda: [*model.parameters()], finds_unused=False, slots=2)
        team.start(synchronizes=True)
        loss = team.forward(lambda x: model(x).mean(), inputs)
        (team.averaged_loss(loss, 1.0, [torch.tensor(1.0), torch.tensor(3.0)]) * 1024).backward()
        return team.mean_numbers.tolist()

    assert connected(average, 2) == [[1.0, 3.0]] * 2


def test_microbatches_add_up_and_only_the_last_one_is_averaged():
    def average(rank):
        model, inputs = model_and_inputs(rank)
        team, calls = Replica(model, lambda: [*model.parameters()], finds_unused=False, slots=2), []
        team.clear()
        for number in range(3):
            team.start(synchronizes=number == 2)
            loss = team.forward(lambda x: model(x).sum(), inputs[number : number + 1])
            team.backward(loss, 1.0, [torch.tensor(1.0), loss.detach().float()])
            calls.append(team.mean_numbers[0].item())
        return calls, team.mean_numbers[1].item()

    of_ranks = connected(average, 2)
    assert [calls for calls, _ in of_ranks] == [[1.0, 2.0, 3.0]] * 2
    assert of_ranks[0][1] == of_ranks[1][1]


def test_a_rank_without_a_loss_takes_part_with_nothing():
    def average(rank):
        model, inputs = model_and_inputs(rank)
        team = Replica(model, lambda: [*model.parameters()], finds_unused=True)
        team.start(synchronizes=True)
        loss = team.forward(lambda x: model(x).mean() if rank else None, inputs)
        numbers = [torch.tensor(1.0)] if rank else ()
        team.backward(loss, 1.0 if rank else 0.0, numbers)
        return gradients(model), team.mean_numbers[0].item()

    (first, of_first), (second, of_second) = connected(average, 2)
    assert of_first == of_second == 0.5
    assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))
    assert any(one.any() for one in first)


def test_parameters_that_got_no_gradient_are_named():
    def reject(rank):
        model = nn.ModuleDict({"used": nn.Linear(2, 1), "left_out": nn.Linear(2, 1)})
        team = Replica(model, lambda: [*model.parameters()], finds_unused=False)
        team.start(synchronizes=True)
        loss = team.forward(lambda x: model["used"](x).mean(), torch.ones(2, 2))
        team.backward(loss, 1.0, [torch.tensor(1.0)])
        with pytest.raises(ModelError, match=r"left_out\.weight, left_out\.bias"):
            team.check_complete()

    connected(reject, 2)


def test_the_model_is_left_as_it_was():
    def compare(rank):
        model, _ = model_and_inputs(rank)
        model[0].bias.requires_grad_(False)
        before = {name: one.clone() for name, one in model.state_dict().items()}
        Replica(model, lambda: [*model.parameters()], finds_unused=True)
        assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())
        assert not model[0].bias.requires_grad
        assert gradients(model) == [None] * 4

    connected(compare, 2)


def test_gradients_that_wait_for_their_update_are_kept():
    def keep(rank):
        model, _ = model_and_inputs(rank)
        model[0].weight.grad = torch.full_like(model[0].weight, 7.0)
        Replica(model, lambda: [*model.parameters()], finds_unused=False)
        return [None if one is None else one.unique().tolist() for one in gradients(model)]

    assert connected(keep, 2) == [[[7.0], None, None, None]] * 2
