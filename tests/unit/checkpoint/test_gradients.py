import pytest
import torch
from torch import nn

from hookloop.checkpoint.state.gradients import (
    marking_used_gradients,
    pending_gradients,
    restore_gradients,
)
from hookloop.errors import CheckpointError


def parts():
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    return model, {"default": torch.optim.SGD(model.parameters(), lr=0.1)}


def backward(model):
    model(torch.ones(1, 2)).sum().backward()


def test_what_no_step_has_used_is_kept():
    model, optimizers = parts()
    with marking_used_gradients(optimizers):
        assert pending_gradients(optimizers) == {"default": {}}
        backward(model)
        kept = pending_gradients(optimizers)["default"]
        assert torch.equal(kept[0], model.weight.grad) and torch.equal(kept[1], model.bias.grad)


def test_what_a_step_has_used_is_only_named():
    model, optimizers = parts()
    with marking_used_gradients(optimizers):
        backward(model)
        optimizers["default"].step()
        assert pending_gradients(optimizers) == {"default": {0: None, 1: None}}


def test_what_came_after_the_step_is_kept():
    model, optimizers = parts()
    with marking_used_gradients(optimizers):
        backward(model)
        optimizers["default"].step()
        backward(model)  # Onto the old ones.
        assert torch.equal(pending_gradients(optimizers)["default"][1], torch.full((1,), 2.0))
        optimizers["default"].step()
        optimizers["default"].zero_grad()
        backward(model)  # New ones.
        assert torch.equal(pending_gradients(optimizers)["default"][1], torch.ones(1))


def test_nothing_is_watched_afterwards():
    _, optimizers = parts()
    with marking_used_gradients(optimizers):
        pass
    assert not optimizers["default"]._optimizer_step_post_hooks


def test_gradients_come_back():
    model, optimizers = parts()
    backward(model)
    state = pending_gradients(optimizers)
    state["default"][1] = None
    other, theirs = parts()
    restore_gradients(theirs, state, "x.pth")
    assert torch.equal(other.weight.grad, model.weight.grad)
    assert other.weight.grad is not model.weight.grad
    assert torch.equal(other.bias.grad, torch.zeros(1))


def test_sparse_gradients_come_back_sparse():
    table = nn.Embedding(4, 2, sparse=True)
    optimizers = {"default": torch.optim.SparseAdam(table.parameters())}
    for _ in range(2):
        table(torch.tensor([1, 1, 3])).sum().backward()
    before, state = table.weight.grad.to_dense(), pending_gradients(optimizers)
    table.weight.grad = None
    restore_gradients(optimizers, state, "x.pth")
    assert table.weight.grad.is_sparse
    assert torch.equal(table.weight.grad.to_dense(), before)
    with marking_used_gradients(optimizers):
        optimizers["default"].step()
        assert pending_gradients(optimizers) == {"default": {}}


@pytest.mark.parametrize("state", [None, {}, {"other": {}}])
def test_a_checkpoint_may_have_none(state):
    model, optimizers = parts()
    restore_gradients(optimizers, state, "x.pth")
    assert model.weight.grad is None


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"default": {7: torch.ones(1)}}, "index 7 .* has 2 parameters"),
        ({"default": {"x": torch.ones(1)}}, "index 'x'"),
        ({"default": {0: torch.ones(3)}}, r"is \(3,\), its parameter \(1, 2\)"),
        ({"default": {0: "text"}}, "is str"),
        ({"default": {0: {"indices": torch.ones(1)}}}, "not a sparse tensor"),
        (
            {"default": {0: {"indices": torch.tensor([[0], [9]]), "values": torch.ones(1)}}},
            "not a sparse tensor",
        ),
        ({"other": {0: None}}, "has 0 parameters"),
    ],
)
def test_gradients_of_something_else_are_rejected(state, message):
    _, optimizers = parts()
    with pytest.raises(CheckpointError, match=message):
        restore_gradients(optimizers, state, "x.pth")
