import pytest
import torch
from torch import nn

from hookloop.errors import CheckpointError
from hookloop.hooks.weights._second_weights import SecondWeights


def make_model(dtype=torch.float32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).to(dtype)


def add(model, number):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(number)


def copies(tensors):
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def assert_equal(tensors, others):
    assert tensors.keys() == others.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, others[name]), name


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_blending_moves_by_a_share_of_the_distance(share):
    model = make_model()
    second = SecondWeights(model)
    add(model, 8.0)
    second.blend(share)
    for number, live in zip(second.numbers, model.parameters(), strict=True):
        torch.testing.assert_close(number, live - 8 * (1 - share))


def test_several_blends_are_a_moving_average():
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    second = SecondWeights(model)
    average = 0.0
    for value in (4.0, -2.0, 16.0):
        nn.init.constant_(model.weight, value)
        second.blend(0.25)
        average += 0.25 * (value - average)
    assert second.numbers[0].item() == pytest.approx(average)


def test_swapping_in_and_out_returns_the_same_bits():
    model = make_model()
    second = SecondWeights(model)
    averaged = copies(second.second())
    add(model, 0.1)
    own = copies(dict(model.named_parameters()))
    tensors = [parameter.data_ptr() for parameter in model.parameters()]
    second.swap_in()
    second.swap_in()  # A second call must not take the averaged numbers for the model's own.
    assert second.is_in
    assert_equal(copies(dict(model.named_parameters())), averaged)
    assert_equal(second.first(), own)
    second.swap_out()
    assert not second.is_in
    assert_equal(copies(dict(model.named_parameters())), own)
    # The optimizer refers to these tensors, so they must stay the same ones.
    assert [parameter.data_ptr() for parameter in model.parameters()] == tensors


def test_swapping_out_first_changes_nothing():
    model = make_model()
    second = SecondWeights(model)
    add(model, 1.0)
    own = copies(dict(model.named_parameters()))
    second.swap_out()
    assert_equal(copies(dict(model.named_parameters())), own)


def test_buffers_belong_to_the_set_only_when_asked_for():
    model = make_model()
    assert {*SecondWeights(model).names} == {*dict(model.named_parameters())}
    # num_batches_tracked is a counter of integers, which has no average.
    floats = {name for name, tensor in model.state_dict().items() if tensor.is_floating_point()}
    assert {*SecondWeights(model, buffers=True).names} == floats


def test_half_precision_is_averaged_in_single_and_returned_in_half():
    model = make_model(torch.bfloat16)
    second = SecondWeights(model)
    add(model, 1.0)
    for _ in range(10):
        second.blend(0.001)  # Too small a step for bfloat16: it would be rounded away.
    moved = second.numbers[0] - (model[0].weight - 1).float()
    assert second.numbers[0].dtype == torch.float32
    assert moved.mean().item() == pytest.approx(1 - 0.999**10, rel=0.05)
    assert {tensor.dtype for tensor in second.second().values()} == {torch.bfloat16}


def test_tied_weights_have_one_copy_under_two_names():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    second = SecondWeights(model)
    assert len(second.numbers) == 1
    assert {*second.state_dict()} == {"0.weight", "1.weight"}


def test_a_state_is_taken_back():
    first, other = SecondWeights(make_model()), SecondWeights(make_model())
    for tensor in first.numbers:
        tensor.add_(3)
    other.load_state_dict(copies(first.state_dict()))
    assert_equal(other.state_dict(), first.state_dict())


@pytest.mark.parametrize("change", ["missing", "additional", "shape"])
def test_a_state_of_another_model_is_rejected_and_changes_nothing(change):
    second = SecondWeights(make_model())
    before = copies(second.state_dict())
    state = {name: tensor + 1 for name, tensor in before.items()}
    if change == "missing":
        del state["2.bias"]
    elif change == "additional":
        state["3.bias"] = torch.zeros(2)
    else:
        state["2.bias"] = torch.zeros(5)
    with pytest.raises(CheckpointError, match=r"do not fit the model: [23]\.bias\."):
        second.load_state_dict(state)
    assert_equal(second.state_dict(), before)
