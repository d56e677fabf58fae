import pytest
import torch
from tests.ranks import on_ranks

from hookloop.errors import HookloopError, ModelError
from hookloop.parallel.ranks import Ranks
from hookloop.parallel.settings import Parallel
from hookloop.parallel.sharded import Shards, blocks_of, check_optimizers
from hookloop.parallel.world import World

CPU = torch.device("cpu")


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(5, 5)

    def forward(self, inputs):
        return torch.tanh(self.linear(inputs))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.head = torch.nn.Linear(5, 1)

    def run_through(self, inputs):  # Not the forward: a step may call anything.
        for block in self.blocks:
            inputs = block(inputs)
        return self.head(inputs)


def test_the_entries_of_lists_are_gathered_one_at_a_time():
    net = Net()
    assert set(blocks_of(net, ())) == set(net.blocks)


def test_classes_are_found_by_name_inner_ones_first():
    net = Net()
    found = blocks_of(net, ["Block", "torch.nn.modules.linear.Linear"])
    assert set(found) == {*net.blocks, *(block.linear for block in net.blocks), net.head}
    assert found.index(net.blocks[0].linear) < found.index(net.blocks[0])


def test_a_class_that_is_not_in_the_model_is_rejected():
    with pytest.raises(HookloopError, match="Bloc.*Block.*Linear"):
        blocks_of(Net(), ["Bloc"])


def test_optimizers_that_cannot_step_shards_are_rejected():
    weight = torch.nn.Parameter(torch.ones(2, 2))
    with pytest.raises(ModelError, match="Adafactor"):
        check_optimizers({"default": torch.optim.Adafactor([weight])})
    with pytest.raises(ModelError, match="SGD.*fused=True"):
        check_optimizers({"default": torch.optim.SGD([weight], lr=0.1, fused=True)})
    stepped = torch.optim.Adam([weight])
    weight.grad = torch.ones(2, 2)
    stepped.step()
    with pytest.raises(ModelError, match="has stepped already"):
        check_optimizers({"default": stepped})


def train(settings, size):
    """Make three updates of a sharded model, each rank with its rows of the batch."""
    ranks = Ranks(World.from_environment())
    ranks.open(CPU)
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    shards = Shards(net, {"default": optimizer}, ranks, Parallel.parse(settings), CPU)
    inputs = torch.randn(2 * size, 5)
    own = inputs[2 * ranks.world.rank : 2 * ranks.world.rank + 2]
    for _ in range(3):
        optimizer.zero_grad()
        shards.start(synchronizes=True)
        shards.forward(lambda: net.run_through(own).pow(2).mean()).backward()
        optimizer.step()
    with torch.no_grad():
        output = shards.forward(lambda: net.run_through(inputs))
    weights = {name: one.full_tensor() for name, one in net.named_parameters()}
    return weights, output, type(net).__name__


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        "sharded",
        {"strategy": "sharded", "shard": ["Linear"]},
        {"strategy": "sharded", "activation_checkpointing": True},
        {"strategy": "sharded", "offload": True},
    ],
)
def test_shards_compute_what_the_whole_model_computes(settings):
    size = 3
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    inputs = torch.randn(2 * size, 5)
    for _ in range(3):
        optimizer.zero_grad()
        net.run_through(inputs).pow(2).mean().backward()
        optimizer.step()
    for weights, output, kind in on_ranks(train, size, settings, size):
        assert kind == "Net"
        for name, one in net.named_parameters():
            assert torch.allclose(weights[name], one, atol=1e-5)
        assert torch.allclose(output, net.run_through(inputs), atol=1e-5)


@pytest.mark.slow
def test_a_mesh_of_copies_computes_the_same():
    settings = {"strategy": "sharded", "mesh": {"replicate": 2, "shard": 2}}
    copies = on_ranks(train, 4, settings, 4)
    plain = on_ranks(train, 4, "sharded", 4)
    for (one, *_), (other, *_) in zip(copies, plain, strict=True):
        assert all(torch.allclose(one[name], other[name], atol=1e-6) for name in one)


@pytest.mark.slow
def test_a_mesh_that_does_not_fit_is_rejected():
    def work():
        with pytest.raises(HookloopError, match="2.*2.*= 4 ranks.*3"):
            train({"strategy": "sharded", "mesh": {"replicate": 2, "shard": 2}}, 3)

    on_ranks(work, 3)
