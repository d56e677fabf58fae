"""Kinds of state that nobody declares, each in a training whose weights depend on it."""

import random
from collections import Counter, OrderedDict, defaultdict, deque
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset, Sampler

from hookloop import Hook
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
