"""A Runner on several processes trains as one process with the global batch."""

from itertools import chain

import pytest
import torch
from tests.ranks import each_rank, on_ranks
from torch import nn
from torch.utils.data import Dataset

from hookloop_mmengine import dist
from hookloop_mmengine.evaluator import BaseMetric
from hookloop_mmengine.hooks import Hook
from hookloop_mmengine.model import BaseModel, is_model_wrapper
from hookloop_mmengine.optim import OptimWrapper, OptimWrapperDict
from hookloop_mmengine.runner import Runner

pytestmark = pytest.mark.slow


class Points(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(4)
        self.inputs = torch.randn(count, 3, generator=generator)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return {"inputs": self.inputs[index], "targets": self.inputs[index].sum(0, True).sin(),
                "number": index}  # fmt: skip


class Net(BaseModel):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))

    def forward(self, inputs, targets, number, mode="tensor"):
        output = self.layers(inputs)
        if mode == "loss":
            error = (output - targets).pow(2).mean()
            return {"loss_mse": error, "loss_l1": 0.1 * (output - targets).abs().mean()}
        return [(int(n), float(o)) for n, o in zip(number, output, strict=True)]


class Adversaries(Net):
    """Two optimizers, one of which the model updates without its wrapper."""

    def __init__(self):
        super().__init__()
        self.other = nn.Linear(3, 1)

    def train_step(self, data, optim_wrapper):
        losses = self(**data, mode="loss")
        optim_wrapper["first"].update_params(losses["loss_mse"])
        goal = self.layers(data["inputs"]).detach()
        second = (self.other(data["inputs"]) - goal).pow(2).mean()
        optim_wrapper["second"].zero_grad()
        second.backward()
        optim_wrapper["second"].step()
        return {"loss": losses["loss_mse"], "second": second.item()}


class InOrder(BaseMetric):
    """Checks that each sample arrives once, in the order of the data."""

    def process(self, data_batch, data_samples):
        self.results += data_samples

    def compute_metrics(self, results):
        numbers = [number for number, _ in results]
        assert numbers == list(range(103)), numbers
        return {"error": sum(value for _, value in results) / len(results)}


class PerBatch(BaseMetric):
    """Has one result for each batch, and not for each sample."""

    default_prefix = "batches"

    def process(self, data_batch, data_samples):
        self.results.append([int(number) for number in data_batch["number"]])

    def compute_metrics(self, results):
        assert [number for batch in results for number in batch] == list(range(103))
        return {"samples": float(sum(map(len, results)))}


class Watch(Hook):
    """Writes down what hooks see, and collects predictions as hooks of projects do."""

    def __init__(self):
        self.losses, self.orders, self.collected, self.predictions = [], [], [], []

    def before_train(self, runner):
        self.wrapped = is_model_wrapper(runner.model)
        model = runner.model.module if self.wrapped else runner.model
        assert isinstance(model, Net)
        assert not is_model_wrapper(runner.run.model)
        self.length, self.world = len(runner.train_dataloader), runner.world_size

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.losses.append({name: torch.as_tensor(value).item() for name, value in outputs.items()})
        self.orders.append([int(number) for number in data_batch["number"]])
        assert runner.model.training and next(runner.model.parameters()).requires_grad

    def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        assert not runner.model.training
        self.predictions += outputs

    def after_val_epoch(self, runner, metrics=None):
        self.collected.append(dist.collect_results(self.predictions, 103))
        self.predictions = []


def loader(count, batch_size, shuffle, **options):
    return {"batch_size": batch_size, "num_workers": 0, "dataset": Points(count),
            "sampler": {"type": "DefaultSampler", "shuffle": shuffle},
            "collate_fn": {"type": "default_collate"}, **options}  # fmt: skip


def make(directory, batch_size, model=None, **options):
    torch.manual_seed(0)
    return Runner(**{
        "model": model or Net(),
        "work_dir": str(directory),
        "launcher": "pytorch" if dist.infer_launcher() == "pytorch" else "none",
        "train_dataloader": loader(50, batch_size, True),
        "train_cfg": {"by_epoch": True, "max_epochs": 3},
        "val_dataloader": loader(103, batch_size, False),
        "val_cfg": {},
        "val_evaluator": [InOrder(), PerBatch()],
        "optim_wrapper": {"optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9}},
        "randomness": {"seed": 7},
        "log_level": "ERROR",
        **options,
    })  # fmt: skip


def train(directory, batch_size, model=None, options=None):
    watch = Watch()
    settings = {"custom_hooks": [watch, *(options or {}).pop("custom_hooks", [])]}
    runner = make(directory, batch_size, model and model(), **settings, **(options or {}))
    weights = {name: one.detach().clone() for name, one in runner.train().state_dict().items()}
    return weights, watch.__dict__, runner.raw_metrics


def assert_close(one, other, tolerance=1e-6):
    for name in other:
        torch.testing.assert_close(one[name], other[name], atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("size", [2, 3])
def test_processes_train_as_one_with_the_global_batch(tmp_path, size):
    # 50 samples in batches of 12: the last one has two, so that of three ranks one has none.
    alone, seen, metrics = train(tmp_path / "one", 12)
    ranks = on_ranks(train, size, tmp_path / "many", 12 // size)
    for weights, _, of_rank in ranks:
        assert_close(weights, alone)
        assert of_rank == pytest.approx(metrics, abs=1e-6)
        assert of_rank["batches/samples"] == 103.0
    first = ranks[0][1]
    assert not seen["wrapped"]
    assert [row["wrapped"] for _, row, _ in ranks] == [True] * size
    assert (first["length"], first["world"]) == (seen["length"], size) == (5, size)
    for number, (losses, order) in enumerate(zip(seen["losses"], seen["orders"], strict=True)):
        parts = [row["orders"][number] for _, row, _ in ranks]
        # A rank without a part reads the first sample, which does not count.
        assert list(dict.fromkeys(chain.from_iterable(parts))) == order
        for _, row, _ in ranks:
            assert row["losses"][number] == pytest.approx(losses, abs=1e-6)
    # What a hook collects itself is in the order of the data, and in the first process only.
    assert [len(one) for one in first["collected"]] == [103] * 3
    assert [number for number, _ in first["collected"][0]] == list(range(103))
    assert ranks[1][1]["collected"] == [None] * 3


@pytest.mark.parametrize(
    "options",
    [
        {"optim_wrapper": {"optimizer": {"type": "Adam", "lr": 0.01}, "accumulative_counts": 2,
                           "clip_grad": {"max_norm": 0.1}}},
        {"train_cfg": {"by_epoch": False, "max_iters": 13, "val_interval": 5},
         "train_dataloader": loader(50, None, True, sampler={"type": "InfiniteSampler"})},
    ],
)  # fmt: skip
def test_accumulation_and_iterations(tmp_path, options):
    def run(directory, batch_size):
        chosen = dict(options)
        if "train_dataloader" in chosen:
            chosen["train_dataloader"] = {**chosen["train_dataloader"], "batch_size": batch_size}
        return train(directory, batch_size, None, chosen)

    alone, _, metrics = run(tmp_path / "one", 12)
    for weights, _, of_rank in on_ranks(run, 2, tmp_path / "two", 6):
        assert_close(weights, alone)
        assert of_rank == pytest.approx(metrics, abs=1e-6)


def test_a_model_with_two_optimizers_makes_its_own_steps(tmp_path):
    def run(directory, batch_size):
        torch.manual_seed(0)
        model = Adversaries()
        wrappers = OptimWrapperDict(
            first=OptimWrapper(torch.optim.SGD(model.layers.parameters(), lr=0.1)),
            second=OptimWrapper(
                torch.optim.Adam(model.other.parameters(), lr=0.01), clip_grad={"max_norm": 0.2}
            ),
        )
        return train(directory, batch_size, lambda: model, {"optim_wrapper": wrappers})

    alone, seen, _ = run(tmp_path / "one", 12)
    for weights, watched, _ in on_ranks(run, 3, tmp_path / "three", 4):
        assert_close(weights, alone)
        assert watched["losses"][-1] == pytest.approx(seen["losses"][-1], abs=1e-6)


class Unused(Net):
    def __init__(self):
        super().__init__()
        self.idle = nn.Linear(2, 2)


def test_unused_parameters_are_an_error_unless_the_config_allows_them(tmp_path):
    ends = each_rank(train, 2, tmp_path / "a", 6, Unused)
    assert all(end.code for end in ends)
    assert any("find_unused_parameters=True" in end.error for end in ends)
    allowed = {"cfg": {"find_unused_parameters": True}}
    assert len(on_ranks(train, 2, tmp_path / "b", 6, Unused, allowed)) == 2
