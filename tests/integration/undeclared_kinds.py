"""Kinds of state that nobody declares, each in a training whose weights depend on it."""

import dataclasses
import random
import warnings
from array import array
from collections import Counter, OrderedDict, UserDict, defaultdict, deque
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import partial, wraps
from queue import Queue
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
from tests.integration import undeclared_elsewhere as elsewhere
from torch import nn
from torch.nn.functional import mse_loss
from torch.optim.lr_scheduler import LambdaLR, LRScheduler
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Sampler, Subset

from hookloop import Hook
from hookloop.engine.hook import FunctionHook
from hookloop.hooks import AverageWeights
from hookloop.trainer.preparation import Preparation
from hookloop.update.update import Update

KINDS = {}


def kind(function=None, *, named=None):
    """Register a kind; ``named`` is what a warning calls a state that cannot be saved."""
    if function is None:
        return partial(kind, named=named)
    KINDS[function.__name__] = (function, named)
    return function


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def scale(self):
        return 1.0

    def forward(self, inputs):
        return self.layer(inputs) * self.scale()


class Samples(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(24, 4, generator=generator)
        self.targets = self.inputs.sum(1, keepdim=True)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.inputs[index], self.targets[index]


def optimizer(*modules, lr=0.05):
    return torch.optim.SGD([p for one in modules for p in one.parameters()], lr=lr, momentum=0.9)


def of_model(model):
    return {"model": model, "loss": mse_loss, "optimizer": optimizer(model)}


def of_loss(loss):
    model = Net()
    trained = [model, loss] if isinstance(loss, nn.Module) else [model]
    return {"model": model, "loss": loss, "optimizer": optimizer(*trained)}


def of_step(step, model=None, *others):
    model = model or Net()
    return {"model": model, "step": step, "optimizer": optimizer(model, *others)}


def of_hook(hook):
    return {**of_model(Net()), "hooks": [hook]}


def of_data(dataset, **options):
    loader = DataLoader(dataset, batch_size=6, **({"shuffle": True} | options))
    return {**of_model(Net()), "train_data": loader}


# --- the model ----------------------------------------------------------------------------------


class OfModel(Net):
    """Lets `scale` depend on what `make` returns and `change` changes, in training only."""

    def __init__(self, make, change):
        super().__init__()
        self.held = make()
        self.change = change

    def scale(self):
        if self.training:
            return self.change(self)
        return 1.0


def _count(model):
    model.held += 1
    return 1 + 0.1 * model.held


def _append(model):
    model.held.append(0.1 * (len(model.held) + 1))
    return 1 + sum(model.held)


@kind
def counter_of_model():
    return of_model(OfModel(lambda: 0, _count))


@kind
def temperature_of_model():
    def cool(model):
        model.held *= 0.9
        return 1 + model.held

    return of_model(OfModel(lambda: 1.0, cool))


@kind
def deque_of_model():
    return of_model(OfModel(lambda: deque(maxlen=3), _append))


@kind
def numpy_array_of_model():
    def grow(model):
        model.held[0] += 0.1
        return 1 + float(model.held[0])

    return of_model(OfModel(lambda: np.zeros(2), grow))


@kind
def tensor_attribute_of_model():
    def grow(model):
        model.held = model.held + 0.1
        return 1 + model.held

    return of_model(OfModel(lambda: torch.zeros(()), grow))


@kind
def tensor_made_later():
    def grow(model):
        model.held = torch.tensor(0.1) if model.held is None else model.held + 0.1
        return 1 + model.held

    return of_model(OfModel(lambda: None, grow))


@kind
def defaultdict_of_model():
    def grow(model):
        model.held["calls"] += 1
        return 1 + 0.1 * model.held["calls"]

    return of_model(OfModel(lambda: defaultdict(int), grow))


@kind
def nested_containers_of_model():
    def grow(model):
        model.held.setdefault(("a", 1), deque(maxlen=2)).append(np.float64(0.1 * len(model.held)))
        model.held[len(model.held)] = Counter("ab")
        return 1 + 0.1 * len(model.held) + float(sum(model.held["a", 1]))

    return of_model(OfModel(OrderedDict, grow))


@kind
def numpy_generator_of_model():
    return of_model(OfModel(lambda: np.random.default_rng(3), lambda m: 1 + m.held.random()))


@kind
def torch_generator_of_model():
    return of_model(
        OfModel(
            lambda: torch.Generator().manual_seed(3),
            lambda m: 1 + torch.rand((), generator=m.held),
        )
    )


@kind
def python_generator_of_model():
    return of_model(OfModel(lambda: random.Random(3), lambda m: 1 + m.held.random()))


class Annealed:
    def __init__(self):
        self.value = 0

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


class Plain:
    """An object without a ``state_dict``."""

    calls = 0

    def __init__(self):
        self.value = 0


def _anneal(model):
    model.held.value += 1
    return 1 + 0.1 * model.held.value


@kind
def object_with_state_of_model():
    return of_model(OfModel(Annealed, _anneal))


@kind
def plain_object_of_model():
    return of_model(OfModel(Plain, _anneal))


class Slotted:
    __slots__ = ("value",)

    def __init__(self):
        self.value = 0


@kind
def object_with_slots_of_model():
    return of_model(OfModel(Slotted, _anneal))


@kind
def buffer_that_is_not_persistent():
    class Model(Net):
        def __init__(self):
            super().__init__()
            self.register_buffer("held", torch.zeros(()), persistent=False)

        def scale(self):
            if self.training:
                self.held += 0.1
            return 1 + self.held

    return of_model(Model())


@kind(named="model.held")
def iterator_of_model():
    return of_model(OfModel(lambda: iter(range(100)), lambda m: 1 + 0.1 * next(m.held)))


@kind(named="model.held")
def objects_that_are_added():
    def grow(model):
        model.held.append(Plain())
        return 1 + 0.1 * len(model.held)

    return of_model(OfModel(list, grow))


@kind(named="model.held")
def object_made_later():
    def grow(model):
        model.held = model.held or Plain()
        return _anneal(model)

    return of_model(OfModel(lambda: None, grow))


# --- the loss -----------------------------------------------------------------------------------


class TrainedLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, output, targets):
        return torch.exp(-self.weight) * mse_loss(output, targets) + self.weight


@kind
def parameter_of_loss():
    return of_loss(TrainedLoss())


class CenteredLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("center", torch.zeros(1))
        self.calls = 0

    def forward(self, output, targets):
        if torch.is_grad_enabled():
            self.calls += 1
            self.center = self.center * 0.9 + output.detach().mean(0) * 0.1
        return mse_loss(output - self.center - 0.01 * self.calls, targets)


@kind
def buffer_of_loss():
    model = Net()
    return {"model": model, "loss": CenteredLoss(), "optimizer": optimizer(model)}


@kind
def closure_as_loss():
    calls = 0

    def loss(output, targets):
        nonlocal calls
        calls += 1
        return mse_loss(output * (1 + 0.1 * calls), targets)

    return of_loss(loss)


class LossObject:
    def __init__(self):
        self.calls = 0

    def __call__(self, output, targets):
        self.calls += 1
        return mse_loss(output * (1 + 0.1 * self.calls), targets)

    compute = __call__


@kind
def object_as_loss():
    return of_loss(LossObject())


@kind
def method_as_loss():
    return of_loss(LossObject().compute)


def _loss_with(state, output, targets):
    state["calls"] += 1
    return mse_loss(output * (1 + 0.1 * state["calls"]), targets)


@kind
def partial_as_loss():
    return of_loss(partial(_loss_with, {"calls": 0}))


@kind
def module_in_closure_of_loss():
    inner = TrainedLoss()
    options = of_loss(lambda output, targets: 2 * inner(output, targets))
    return {**options, "optimizer": optimizer(options["model"], inner)}


# --- the step -----------------------------------------------------------------------------------


@kind
def teacher_in_closure_of_step():
    model, teacher = Net(), Net()

    def step(run, batch):
        inputs, targets = batch
        output = run.model(inputs)
        if run.phase == "train":
            with torch.no_grad():
                for own, other in zip(teacher.parameters(), run.model.parameters(), strict=True):
                    own.data.mul_(0.9).add_(other.data, alpha=0.1)
        return mse_loss(output, targets) + mse_loss(output, teacher(inputs).detach())

    return of_step(step, model)


STATE = {"calls": 0}


def _step_with_global(run, batch):
    STATE["calls"] += 1
    return mse_loss(run.model(batch[0]) * (1 + 0.1 * STATE["calls"]), batch[1])


@kind
def global_of_step():
    STATE["calls"] = 0
    return of_step(_step_with_global)


class StepObject:
    def __init__(self):
        self.calls, self.teacher = 0, TrainedLoss()

    def __call__(self, run, batch):
        self.calls += 1
        return self.teacher(run.model(batch[0]), batch[1] * (1 + 0.1 * self.calls))

    step = __call__


@kind
def object_as_step():
    step = StepObject()
    return of_step(step, None, step.teacher)


@kind
def method_as_step():
    step = StepObject()
    return of_step(step.step, None, step.teacher)


@kind
def partial_as_step():
    def step(teacher, run, batch):
        return teacher(run.model(batch[0]), batch[1])

    teacher = TrainedLoss()
    return of_step(partial(step, teacher), None, teacher)


@kind
def optimizer_of_its_own_in_step():
    extra = nn.Parameter(torch.zeros(()))
    own = torch.optim.Adam([extra], lr=0.1)

    def step(run, batch):
        loss = mse_loss(run.model(batch[0]) + extra, batch[1])
        if run.phase == "train":
            (gradient,) = torch.autograd.grad(loss, extra, retain_graph=True)
            extra.grad = gradient
            own.step()
            extra.grad = None
        return loss

    return of_step(step)


@kind(named="step.batches")
def iterator_of_step():
    batches = iter(DataLoader(Samples(), batch_size=1))

    def step(run, batch):
        weight = 1 + 0.1 * next(batches)[1].mean() if run.phase == "train" else 1
        return mse_loss(run.model(batch[0]) * weight, batch[1])

    return of_step(step)


@kind
def attribute_of_update():
    class Own(Update):
        def __init__(self, given):
            super().__init__("", lambda run: run.model(run.batch[0]), self._loss, [given])
            self.seen = 0

        def _loss(self, run):
            self.seen += run.phase == "train"
            return mse_loss(run.output * (1 + 0.1 * self.seen), run.batch[1])

    model = Net()
    given = optimizer(model)
    return {"model": model, "step": Own(given), "optimizer": given}


# --- metrics ------------------------------------------------------------------------------------


@kind
def object_as_metric():
    class Metric:
        """Moves the model, so that its state matters."""

        def __init__(self, model):
            self.model, self.calls = model, 0

        def __call__(self, output, targets):
            self.calls += 1
            with torch.no_grad():
                self.model.layer.bias += 0.01 * self.calls
            return mse_loss(output, targets)

    options = of_model(Net())
    data = DataLoader(Samples(), batch_size=24)
    return {**options, "metrics": {"own": Metric(options["model"])}, "val_data": data}


# --- schedules ----------------------------------------------------------------------------------


class Factor:
    def __init__(self):
        self.calls, self.past = 0, []

    def __call__(self, step):
        self.calls += 1
        self.past.append(step)
        return 1 / (1 + 0.1 * self.calls)


@kind
def object_in_schedule():
    options = of_model(Net())
    return {**options, "schedule": LambdaLR(options["optimizer"], Factor())}


@kind
def closure_in_schedule():
    calls = 0

    def factor(step):
        nonlocal calls
        calls += 1
        return 1 / (1 + 0.1 * calls)

    options = of_model(Net())
    return {**options, "schedule": LambdaLR(options["optimizer"], factor)}


@kind
def method_in_schedule():
    options = of_model(Net())
    return {**options, "schedule": LambdaLR(options["optimizer"], Factor().__call__)}


# --- hooks --------------------------------------------------------------------------------------


class CountingHook(Hook):
    takes_part_in_training = True

    def __init__(self):
        self.calls = 0

    def after_update(self, run):
        self.calls += 1
        with torch.no_grad():
            run.model.layer.bias += 0.01 * self.calls


@kind
def counter_of_hook():
    return of_hook(CountingHook())


@kind
def averaged_model_of_hook():
    class Average(Hook):
        takes_part_in_training = True

        def before_train(self, run):
            self.average = torch.optim.swa_utils.AveragedModel(run.model)

        def after_update(self, run):
            self.average.update_parameters(run.model)
            with torch.no_grad():
                run.model.layer.bias += 0.1 * self.average.module.layer.bias

    return of_hook(Average())


@kind
def running_statistic_of_hook():
    class Scale(Hook):
        takes_part_in_training = True

        def before_train(self, run):
            self.mean = torch.zeros(())

        def after_forward(self, run):
            if run.phase == "train":
                self.mean = 0.9 * self.mean + 0.1 * run.output.detach().mean()
                run.output = run.output - self.mean

    return of_hook(Scale())


@kind
def function_as_hook():
    calls = []

    class Attach(Hook):
        takes_part_in_training = True

        def __init__(self):
            self.after_update = act

    def act(run):
        calls.append(1)
        with torch.no_grad():
            run.model.layer.bias += 0.01 * len(calls)

    return of_hook(Attach())


@kind
def parameter_group_that_is_added():
    class Grow(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            if run.progress.iter == 2:
                run.optimizer.add_param_group({"params": [run.model.extra], "lr": 0.01})

    class Model(Net):
        def __init__(self):
            super().__init__()
            self.extra = nn.Parameter(torch.ones(()))

        def scale(self):
            return self.extra

    model = Model()
    given = torch.optim.SGD(model.layer.parameters(), lr=0.05, momentum=0.9)
    return {"model": model, "loss": mse_loss, "optimizer": given, "hooks": [Grow()]}


@kind
def frozen_by_hook():
    class Freeze(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            if run.progress.iter == 2:
                run.model.layer.bias.requires_grad_(False)

    return of_hook(Freeze())


# --- data ---------------------------------------------------------------------------------------


class CountingSamples(Samples):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def __getitem__(self, index):
        self.calls += 1
        return self.inputs[index] * (1 + 0.01 * self.calls), self.targets[index]


@kind
def counter_of_data():
    return of_data(CountingSamples())


@kind
def cache_of_data():
    class Cached(Samples):
        """Augments each sample once, with the random numbers of that moment."""

        def __init__(self):
            super().__init__()
            self.cache = {}

        def __getitem__(self, index):
            if index not in self.cache:
                self.cache[index] = self.inputs[index] + torch.randn(4)
            return self.cache[index], self.targets[index]

    return of_data(Cached())


@kind
def generator_of_data():
    class Noisy(Samples):
        def __init__(self):
            super().__init__()
            self.generator = np.random.default_rng(1)

        def __getitem__(self, index):
            return self.inputs[index] * float(self.generator.random()), self.targets[index]

    return of_data(Noisy())


@kind
def data_edited_by_hook():
    class Edit(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            dataset = run.train_data.data.dataset
            dataset.targets[run.progress.iter] += 1.0

    return {**of_data(Samples()), "hooks": [Edit()]}


@kind(named="train_data may not be exact")
def list_of_batches_edited_by_hook():
    class Edit(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            run.train_data.data[1][1].add_(1.0)

    samples = Samples()
    batches = [(samples.inputs[i : i + 6], samples.targets[i : i + 6]) for i in range(0, 24, 6)]
    return {**of_model(Net()), "train_data": batches, "hooks": [Edit()]}


@kind
def collate_function_with_state():
    calls = []

    def collate(samples):
        calls.append(1)
        inputs, targets = zip(*samples, strict=True)
        return torch.stack(inputs) * (1 + 0.1 * len(calls)), torch.stack(targets)

    return of_data(Samples(), collate_fn=collate)


class OwnSampler(Sampler):
    def __init__(self, level):
        self.level = level

    def __iter__(self):
        count = 24
        first = self.level if isinstance(self.level, int) else self.level.value
        yield from ((first + 5 * index) % count for index in range(count))

    def __len__(self):
        return 24


class MoveSampler(Hook):
    takes_part_in_training = True

    def after_train_iter(self, run):
        sampler = run.train_data.data.sampler
        if isinstance(sampler.level, int):
            sampler.level += 1
        else:
            sampler.level.value += 1


@kind
def counter_of_sampler():
    options = of_data(Samples(), sampler=OwnSampler(0), shuffle=False)
    return {**options, "hooks": [MoveSampler()]}


@kind(named="train_data.sampler.level.value")
def object_of_sampler():
    options = of_data(Samples(), sampler=OwnSampler(Plain()), shuffle=False)
    return {**options, "hooks": [MoveSampler()]}


# --- what a script rather has by accident -------------------------------------------------------


def scaled_step(held, change):
    """Return a step in which ``held`` is a variable of the closure, and ``change`` changes it."""

    def step(run, batch):
        scale = change(held) if run.phase == "train" else 1.0
        return mse_loss(run.model(batch[0]) * scale, batch[1])

    return of_step(step)


def _count_attribute(held):
    held.value += 1
    return 1 + 0.1 * held.value


@kind
def simple_namespace_of_step():
    return scaled_step(SimpleNamespace(value=0), _count_attribute)


@kind
def dataclass_of_step():
    @dataclass
    class Progress:
        value: int = 0
        past: list = field(default_factory=list)

    def change(held):
        held.past.append(held.value)
        return _count_attribute(held) + 0.01 * len(held.past)

    return scaled_step(Progress(), change)


@kind
def frozen_dataclass_of_model():
    @dataclass(frozen=True)
    class Progress:
        value: int = 0

    def change(model):
        model.held = dataclasses.replace(model.held, value=model.held.value + 1)
        return 1 + 0.1 * model.held.value

    return of_model(OfModel(Progress, change))


class Place(NamedTuple):
    value: int


@kind
def named_tuple_of_model():
    def change(model):
        model.held = model.held._replace(value=model.held.value + 1)
        return 1 + 0.1 * model.held.value

    return of_model(OfModel(lambda: Place(0), change))


@kind(named="model.held.1")
def tuple_with_a_module_of_model():
    def change(model):
        model.held = (model.held[0], model.held[1] + 1)
        return 1 + 0.1 * model.held[1]

    return of_model(OfModel(lambda: (nn.Identity(), 0), change))


class Level(Enum):
    LOW = 1
    MIDDLE = 2
    HIGH = 3


@kind
def enum_of_model():
    def change(model):
        model.held = Level(min(3, model.held.value + 1))
        return 1 + 0.1 * model.held.value

    return of_model(OfModel(lambda: Level.LOW, change))


class Window(deque):
    """A subclass of a container."""


@kind
def deque_subclass_of_model():
    return of_model(OfModel(Window, _append))


class History(list):
    """A subclass of a container."""


@kind
def list_subclass_of_model():
    return of_model(OfModel(History, _append))


class Labels(dict):
    def __getattr__(self, name):
        return self[name]


@kind
def dict_subclass_of_model():
    def change(model):
        model.held[len(model.held)] = 0.1
        return 1 + 0.1 * len(model.held)

    return of_model(OfModel(Labels, change))


@kind
def user_dict_of_model():
    def change(model):
        model.held[len(model.held)] = 0.1
        return 1 + 0.1 * len(model.held)

    return of_model(OfModel(UserDict, change))


class Steps(int):
    """A subclass of a plain type."""


@kind(named="model.held")
def int_subclass_of_model():
    def change(model):
        model.held = Steps(model.held + 1)
        return 1 + 0.1 * model.held

    return of_model(OfModel(lambda: Steps(0), change))


@kind
def bytes_that_change_in_place():
    def change(model):
        model.held[0] += 1
        return 1 + 0.1 * model.held[0]

    return of_model(OfModel(lambda: bytearray(2), change))


@kind
def array_of_the_standard_library():
    def change(model):
        model.held[0] += 1
        return 1 + 0.1 * model.held[0]

    return of_model(OfModel(lambda: array("d", [0.0]), change))


@kind(named="model.held")
def fraction_of_model():
    def change(model):
        model.held = model.held + 1
        return 1 + 0.1 * float(model.held)

    return of_model(OfModel(lambda: Fraction(1, 2), change))


@kind
def sparse_tensor_of_model():
    def change(model):
        model.held = model.held * 0.9
        return 1 + model.held.to_dense().sum()

    return of_model(OfModel(lambda: torch.ones(3).to_sparse(), change))


@kind(named="model.held")
def array_of_foreign_bytes():
    def change(model):
        model.held[0] += 1
        return 1 + 0.1 * float(model.held[0])

    return of_model(OfModel(lambda: np.zeros(2, ">f4"), change))


@kind
def masked_array_of_model():
    def change(model):
        model.held = model.held + 1
        return 1 + 0.1 * float(model.held.sum())

    return of_model(OfModel(lambda: np.ma.array([1.0, 2.0], mask=[False, True]), change))


@kind
def queue_of_model():
    def change(model):
        model.held.put(1)
        return 1 + 0.1 * model.held.qsize()

    return of_model(OfModel(Queue, change))


@kind
def context_variable_of_model():
    def change(model):
        model.held.set(model.held.get() + 1)
        return 1 + 0.1 * model.held.get()

    return of_model(OfModel(lambda: ContextVar("held", default=0), change))


@kind(named="model.held.n_children_spawned")
def seed_sequence_of_model():
    def change(model):
        return 1 + np.random.default_rng(model.held.spawn(1)[0]).random()

    return of_model(OfModel(lambda: np.random.SeedSequence(1), change))


@kind
def class_attribute_of_model():
    class Model(Net):
        calls = 0

        def scale(self):
            if self.training:
                type(self).calls += 1
            return 1 + 0.1 * self.calls

    return of_model(Model())


@kind
def class_method_of_loss():
    class Loss:
        calls = 0

        @classmethod
        def count(cls):
            cls.calls += 1

        def __call__(self, output, targets):
            self.count()
            return mse_loss(output * (1 + 0.1 * self.calls), targets)

    return of_loss(Loss())


@kind
def attribute_of_a_function():
    def step(run, batch):
        step.calls += 1
        return mse_loss(run.model(batch[0]) * (1 + 0.1 * step.calls), batch[1])

    step.calls = 0
    return of_step(step)


@kind
def default_argument_of_step():
    def step(run, batch, calls=[]):  # noqa: B006 - what is tested
        calls.append(1)
        return mse_loss(run.model(batch[0]) * (1 + 0.1 * len(calls)), batch[1])

    return of_step(step)


@kind
def global_of_another_module():
    elsewhere.CALLS = 0

    def step(run, batch):
        return mse_loss(run.model(batch[0]) * elsewhere.next_scale(), batch[1])

    return of_step(step)


@kind
def decorated_step():
    calls = []

    def counted(function):
        @wraps(function)
        def inner(*args):
            calls.append(1)
            return function(*args) * (1 + 0.1 * len(calls))

        return inner

    @counted
    def step(run, batch):
        return mse_loss(run.model(batch[0]), batch[1])

    return of_step(step)


# --- modules ------------------------------------------------------------------------------------


@kind
def weight_norm_in_loss():
    inner = nn.utils.parametrizations.weight_norm(nn.Linear(1, 1))
    model = Net()

    def loss(output, targets):
        return mse_loss(inner(output), targets)

    return {"model": model, "loss": loss, "optimizer": optimizer(model, inner)}


@kind
def spectral_norm_in_model():
    model = Net()
    nn.utils.parametrizations.spectral_norm(model.layer)
    return of_model(model)


@kind
def spectral_norm_in_loss():
    inner = nn.utils.parametrizations.spectral_norm(nn.Linear(1, 3))
    model = Net()

    def loss(output, targets):
        return mse_loss(inner(output).mean(1, keepdim=True), targets)

    return {"model": model, "loss": loss, "optimizer": optimizer(model, inner)}


@kind
def old_weight_norm_in_step():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inner = nn.utils.weight_norm(nn.Linear(1, 1))

    def step(run, batch):
        return mse_loss(inner(run.model(batch[0])), batch[1])

    return of_step(step, None, inner)


@kind
def batch_norm_in_step():
    norm = nn.BatchNorm1d(1)

    def step(run, batch):
        with torch.no_grad():
            norm.train(run.phase == "train")(batch[1])
        return mse_loss(run.model(batch[0]) - norm.running_mean, batch[1])

    return of_step(step)


@kind
def lazy_module_in_step():
    head = nn.LazyLinear(1)

    def step(run, batch):
        with torch.no_grad():
            head(batch[0])
            head.weight.mul_(0.9)
        return mse_loss(run.model(batch[0]) + head(batch[0]).detach(), batch[1])

    return of_step(step)


@kind
def modules_in_a_list_of_step():
    heads = [nn.Linear(1, 1), {"other": nn.Linear(1, 1)}]

    def step(run, batch):
        output = run.model(batch[0])
        return mse_loss(heads[0](output) + heads[1]["other"](output), batch[1])

    return of_step(step, None, heads[0], heads[1]["other"])


@kind
def module_with_two_owners():
    shared = CenteredLoss()

    def step(run, batch):
        return shared(run.model(batch[0]), batch[1])

    class Reads(Hook):
        takes_part_in_training = True

        def __init__(self):
            self.module = shared

        def after_update(self, run):
            with torch.no_grad():
                run.model.layer.bias += 0.01 * self.module.calls

    return {**of_step(step), "hooks": [Reads()]}


@kind
def module_with_its_own_optimizer_in_step():
    critic = nn.Linear(1, 1)
    own = torch.optim.SGD(critic.parameters(), lr=0.1, momentum=0.9)

    def step(run, batch):
        output = run.model(batch[0])
        if run.phase == "train":
            own.zero_grad()
            with torch.enable_grad():
                gradients = torch.autograd.grad(
                    mse_loss(critic(output.detach()), batch[1]), list(critic.parameters())
                )
            for one, gradient in zip(critic.parameters(), gradients, strict=True):
                one.grad = gradient
            own.step()
        return mse_loss(output, critic(output.detach()).detach())

    return of_step(step)


@kind
def function_on_a_gradient():
    calls = []

    def change(gradient):
        calls.append(1)
        return gradient * (1 + 0.1 * len(calls))

    model = Net()
    model.layer.bias.register_hook(change)
    return of_model(model)


@kind
def forward_hook_with_a_counter():
    calls = []

    def change(module, inputs, output):
        if module.training:
            calls.append(1)
        return output * (1 + 0.1 * len(calls))

    model = Net()
    model.layer.register_forward_hook(change)
    return of_model(model)


@kind
def model_that_leaves_something_out_of_its_state():
    class Model(Net):
        def __init__(self):
            super().__init__()
            self.register_buffer("held", torch.zeros(()))

        def scale(self):
            if self.training:
                self.held += 0.1
            return 1 + self.held

        def state_dict(self, *args, **options):
            state = super().state_dict(*args, **options)
            return {name: value for name, value in state.items() if name != "held"}

        def load_state_dict(self, state, strict=True, assign=False):
            return super().load_state_dict(state, strict=False, assign=assign)

    return of_model(Model())


@kind
def module_in_evaluation_mode():
    class Model(Net):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(1)

        def forward(self, inputs):
            return self.norm(self.layer(inputs))

    class Freeze(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            if run.progress.iter >= 2 and run.model.norm.training:
                run.model.norm.eval()

    # It is done once: in the middle of an epoch that has more iterations than are left.
    class Once(Freeze):
        def after_train_iter(self, run):
            if run.progress.iter == 2:
                run.model.norm.eval()

    return {**of_model(Model()), "hooks": [Once()], "data": {"epoch_iters": 20}}


@dataclass(frozen=True)
class Smoothed(Preparation):
    """A step of the preparation that holds a module, and lets the model use it."""

    inner: nn.Module

    def apply(self, model):
        object.__setattr__(model, "scale", self._scale)

    def _scale(self):
        self.inner.calls += 0.1
        return 1 + self.inner.calls

    def describe(self):
        return {"type": "Smoothed"}


@kind
def module_of_a_preparation():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

    return {**of_model(Net()), "setup": {"prepare": [Smoothed(Counter())]}}


# --- optimizers and schedules -------------------------------------------------------------------


@kind
def attribute_of_optimizer():
    class Warm(torch.optim.SGD):
        def __init__(self, parameters):
            super().__init__(parameters, lr=0.05)
            self.calls = 0

        def step(self, closure=None):
            self.calls += 1
            for group in self.param_groups:
                group["lr"] = 0.01 * self.calls
            return super().step(closure)

    model = Net()
    return {"model": model, "loss": mse_loss, "optimizer": Warm(model.parameters())}


@kind
def function_on_an_optimizer():
    calls = []

    def change(one, args, kwargs):
        calls.append(1)
        for group in one.param_groups:
            group["lr"] = 0.01 * len(calls)

    options = of_model(Net())
    options["optimizer"].register_step_pre_hook(change)
    return options


class OwnSchedule(LRScheduler):
    """A schedule with a number, a list and a generator of its own."""

    def __init__(self, given):
        self.noise, self.past = np.random.default_rng(1), []
        super().__init__(given)

    def get_lr(self):
        self.past.append(self.noise.random())
        return [0.01 * (1 + self.past[-1] + 0.1 * len(self.past)) for _ in self.base_lrs]


@kind
def schedule_subclass():
    options = of_model(Net())
    return {**options, "schedule": OwnSchedule(options["optimizer"])}


@kind
def schedule_with_an_object():
    class Scheduled(LRScheduler):
        def __init__(self, given):
            self.counter = Plain()
            super().__init__(given)

        def get_lr(self):
            self.counter.value += 1
            return [0.05 / (1 + 0.1 * self.counter.value) for _ in self.base_lrs]

    options = of_model(Net())
    return {**options, "schedule": Scheduled(options["optimizer"])}


# --- hooks and data -----------------------------------------------------------------------------


@kind
def closure_attached_as_hook():
    calls = []

    def after_update(run):
        calls.append(1)
        with torch.no_grad():
            run.model.layer.bias += 0.01 * len(calls)

    return of_hook(FunctionHook(after_update, "after_update", takes_part_in_training=True))


@kind
def subclass_of_one_of_our_hooks():
    class Counting(AverageWeights):
        takes_part_in_training = True

        def __init__(self):
            super().__init__(momentum=0.1)
            self.calls = 0

        def after_update(self, run):
            super().after_update(run)
            self.calls += 1
            with torch.no_grad():
                run.model.layer.bias += 0.01 * self.calls

    return of_hook(Counting())


class Remembers(Dataset):
    """A data set that is filled as the training goes."""

    def __init__(self):
        self.past = []

    def __len__(self):
        return len(self.past)

    def __getitem__(self, index):
        return self.past[index]


@kind
def data_set_that_a_step_fills():
    remembered = Remembers()

    def step(run, batch):
        output = run.model(batch[0])
        if run.phase == "train":
            remembered.past.append(output.detach().mean())
        return mse_loss(output * (1 + 0.1 * len(remembered)), batch[1] + remembered[-1])

    return of_step(step)


@kind
def data_that_a_hook_replaced():
    class Other(Hook):
        takes_part_in_training = True

        def __init__(self):
            self.other = DataLoader(CountingSamples(), batch_size=6, shuffle=True)
            self.is_done = False

        def before_train(self, run):
            if run.progress.iter >= 2:
                run.train_data.replace(self.other)

        def after_train_iter(self, run):
            if run.progress.iter == 2:
                run.train_data.replace(self.other, now=True)

    return {**of_data(Samples()), "hooks": [Other()], "data": {"epoch_iters": 20}}


@kind
def counter_of_validation_data():
    validated = CountingSamples()

    class Follow(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            with torch.no_grad():
                run.model.layer.bias += 0.001 * validated.calls

    data = DataLoader(validated, batch_size=24)
    return {**of_model(Net()), "val_data": data, "val_every": "1 iter", "hooks": [Follow()]}


@kind
def data_in_wrappers():
    samples = CountingSamples()
    return of_data(ConcatDataset([Subset(samples, range(12)), Subset(samples, range(12, 24))]))


@kind(named="train_data may not be exact")
def passes_of_an_iterable():
    class Batches:
        def __init__(self):
            self.passes = 0

        def __iter__(self):
            self.passes += 1
            samples = Samples()
            for i in range(0, 24, 6):
                yield samples.inputs[i : i + 6] * self.passes, samples.targets[i : i + 6]

    return {**of_model(Net()), "train_data": Batches()}


@kind(named="train_data may not be exact")
def passes_of_an_iterable_data_set():
    class Batches(IterableDataset):
        def __init__(self):
            self.passes = 0

        def __iter__(self):
            self.passes += 1
            samples = Samples()
            for i in range(24):
                yield samples.inputs[i] * self.passes, samples.targets[i]

    return {**of_model(Net()), "train_data": DataLoader(Batches(), batch_size=6)}


class EpochSampler(Sampler):
    """Shuffles by a number of its own that counts its passes."""

    def __init__(self):
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        generator = torch.Generator().manual_seed(self.passes)
        yield from torch.randperm(24, generator=generator).tolist()

    def __len__(self):
        return 24


@kind
def passes_of_a_sampler():
    return of_data(Samples(), sampler=EpochSampler(), shuffle=False)


class HardBatches:
    """A batch sampler that chooses by the losses that a hook gives it."""

    def __init__(self):
        self.losses = torch.zeros(24)

    def __iter__(self):
        for _ in range(4):
            yield (self.losses + torch.arange(24) / 100).argsort()[-6:].tolist()

    def __len__(self):
        return 4


@kind
def losses_of_a_batch_sampler():
    chooses = HardBatches()

    class Give(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            chooses.losses[run.progress.iter] = run.loss.detach()

    loader = DataLoader(Samples(), batch_sampler=chooses)
    return {**of_model(Net()), "train_data": loader, "hooks": [Give()]}
