"""What the runs that `test_bisect` compares are made of."""

import os

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Hook


class Block(nn.Module):
    def __init__(self, second):
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.second = second
        self.is_second = False

    def forward(self, inputs):
        self.is_second, now = not self.is_second, self.is_second
        found = torch.tanh(self.linear(inputs))
        return found * (1 + self.second) if now else found


class Net(nn.Module):
    def __init__(self, drop=0.2, second=0.0):
        super().__init__()
        self.a, self.n, self.block = nn.Linear(6, 16), nn.BatchNorm1d(16), Block(second)
        self.b = nn.Linear(16, 3)
        self.drop = drop

    def forward(self, inputs):
        found = torch.tanh(self.n(self.a(inputs)))
        found = self.block(self.block(found))
        return self.b(functional.dropout(found, self.drop, self.training))


FAULT = None
"""The iteration in which a computer makes an error that is in no program."""


class Loss(nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = scale
        self.calls = 0

    def forward(self, output, targets):
        self.calls += 1
        wrong = 1.001 if self.calls == FAULT else 1.0
        return functional.cross_entropy(output, targets) * self.scale * wrong


class Chance(nn.Module):
    """Draws from the operating system, which no seed can repeat."""

    def forward(self, output, targets):
        drawn = int.from_bytes(os.urandom(4), "little") / 2**32
        return functional.cross_entropy(output, targets) * (1 + drawn)


class Backward(torch.utils.data.Sampler):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count - 1, -1, -1))

    def __len__(self):
        return self.count


def loader(count=88, flip=None, label=None, backward=False, generator=None, workers=0):
    inputs = torch.randn(count, 6, generator=torch.Generator().manual_seed(1))
    targets = inputs[:, :3].argmax(1)
    if flip is not None:
        inputs[flip] = -inputs[flip]
    if label is not None:
        targets[label] = (targets[label] + 1) % 3
    order = {"sampler": Backward(count)} if backward else {"shuffle": True}
    if generator is not None:
        order["generator"] = torch.Generator().manual_seed(generator)
    return DataLoader(TensorDataset(inputs, targets), 8, num_workers=workers, **order)


class Plant(Hook):
    """Changes one thing after an iteration, or within it."""

    name = "planted"
    takes_part_in_training = True

    def __init__(self, what, at):
        self.what, self.at = what, at

    def before_update(self, run):
        if run.progress.iter + 1 == self.at and self.what == "gradient":
            run.model.b.weight.grad[0, 0] *= 1 + 1e-6

    def after_train_iter(self, run):
        if run.progress.iter != self.at:
            return
        with torch.no_grad():
            if self.what == "weight":
                value = run.model.b.weight[0, 0]
                run.model.b.weight[0, 0] = torch.nextafter(value, torch.tensor(9.0))
            elif self.what == "state of a hook":
                average = next(one for one in run.hooks if one.name == "average")
                average.state_dict()["averaged"]["b.weight"].add_(1e-6)
            elif self.what == "generator":
                torch.rand(1)
            elif self.what == "state of the optimizer":
                run.optimizer.state[run.model.b.weight]["momentum_buffer"][0, 0] += 1e-6
            elif self.what == "buffer":
                run.model.n.running_var[0] += 1e-6
