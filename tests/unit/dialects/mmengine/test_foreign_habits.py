"""What hooks of real projects do with the runner, beyond the calls that it makes."""

import sys
from types import ModuleType
from typing import ClassVar

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from hookloop.dialects.mmengine.evaluator import BaseMetric, Evaluator
from hookloop.dialects.mmengine.hooks import EMAHook, Hook, IterTimerHook, ParamSchedulerHook
from hookloop.dialects.mmengine.model import BaseModel, ExponentialMovingAverage
from hookloop.dialects.mmengine.optim import OptimWrapper
from hookloop.dialects.mmengine.registry import HOOKS, MODELS, DefaultScope, Registry
from hookloop.dialects.mmengine.runner import Runner
from hookloop.dialects.mmengine.runner.loops import _InfiniteDataloaderIterator
from hookloop.hooks import WriteCSV


class Numbers(Dataset):
    def __init__(self, scale=1.0):
        self.values = torch.arange(4.0)[:, None] * scale

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return {"inputs": self.values[index]}


class Net(BaseModel):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 1)

    def forward(self, inputs, mode="tensor"):
        output = self.linear(torch.stack(list(inputs)))
        return {"loss": output.pow(2).mean()} if mode == "loss" else list(output)


class Count(BaseMetric):
    default_prefix = "count"

    def process(self, data_batch, data_samples):
        self.results += data_samples

    def compute_metrics(self, results):
        return {"samples": float(len(results))}


class Seen(Hook):
    priority = "LOWEST"

    def __init__(self):
        self.inputs, self.rates, self.weights, self.counters = [], [], [], []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.inputs.append(sum(float(one) for one in data_batch["inputs"]))

    def after_train_epoch(self, runner):
        self.rates.append(runner.optim_wrapper.param_groups[0]["lr"])

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.weights.append(float(runner.model.linear.weight.detach()))

    def before_test(self, runner):
        self.counters.append((runner.epoch, runner.iter))


def loader(**options):
    return DataLoader(Numbers(), batch_size=2, collate_fn=_collate, **options)


def _collate(samples):
    return {"inputs": [one["inputs"] for one in samples]}


@pytest.fixture(autouse=True)
def scope():
    yield
    DefaultScope._current = None


@pytest.fixture
def run(tmp_path):
    def run(*hooks, by_epoch=True, limit=3, **options):
        torch.manual_seed(0)
        limits = {"max_epochs" if by_epoch else "max_iters": limit, "val_interval": 1}
        parts = {
            "train_dataloader": loader(),
            "val_dataloader": loader(),
            "val_cfg": {},
            "val_evaluator": Evaluator(Count()),
            "test_dataloader": loader(),
            "test_cfg": {},
            "test_evaluator": Evaluator(Count()),
            "train_cfg": {"by_epoch": by_epoch, **limits},
            "optim_wrapper": {"optimizer": {"type": "SGD", "lr": 0.1}},
            "log_level": "ERROR",
        }
        runner = Runner(Net(), str(tmp_path), **(parts | options), custom_hooks=list(hooks))
        runner.train()
        return runner

    return run


def test_another_loader_is_read_from_the_epoch_that_begins(run):
    class Switch(Hook):
        def before_train_epoch(self, runner):
            if runner.epoch == 1:
                bigger = {"dataset": Numbers(10.0), "batch_size": 2, "collate_fn": _collate}
                runner.train_loop.dataloader = Runner.build_dataloader(bigger)

    seen = Seen()
    run(Switch(), seen)
    assert seen.inputs == [1, 5, 10, 50, 10, 50]


def test_another_iterator_is_read_from_the_next_iteration(run):
    class Switch(Hook):
        def before_train_iter(self, runner, batch_idx, data_batch=None):
            if runner.iter == 0:
                bigger = DataLoader(Numbers(10.0), batch_size=2, collate_fn=_collate)
                runner.train_loop.dataloader_iterator = _InfiniteDataloaderIterator(bigger)

    seen = Seen()
    run(Switch(), seen, by_epoch=False, limit=4)
    assert seen.inputs == [1, 10, 50, 10]


def test_a_training_by_iterations_shuffles_each_pass_anew(run):
    shuffled = {
        "dataset": Numbers(),
        "batch_size": 1,
        "collate_fn": _collate,
        "sampler": {"type": "DefaultSampler", "shuffle": True},
    }
    seen = Seen()
    options = {"by_epoch": False, "limit": 12, "randomness": {"seed": 3}}
    run(seen, train_dataloader=shuffled, **options)
    passes = [seen.inputs[place : place + 4] for place in (0, 4, 8)]
    assert all(sorted(one) == [0, 1, 2, 3] for one in passes)
    assert len({tuple(one) for one in passes}) > 1


def test_a_test_after_the_training_sees_its_counters(run):
    seen = Seen()
    run(seen).test()
    assert seen.counters == [(3, 6)]


def test_a_hook_tests_in_the_middle_of_the_training(run):
    class TestToo(Hook):
        metrics: ClassVar = []

        def after_val(self, runner):
            self.metrics.append(runner.test())

    seen, plain = Seen(), Seen()
    hook = TestToo()
    run(hook, seen)
    run(plain)
    assert seen.counters == [(1, 2), (2, 4), (3, 6)]
    assert hook.metrics == [{"count/samples": 4.0}] * 3
    assert seen.weights == plain.weights


def test_a_hook_runs_the_validation_loop_in_the_middle_of_an_epoch(run):
    class Now(Hook):
        metrics: ClassVar = []

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            if runner.iter == 2:
                self.metrics.append(runner.val_loop.run())

    seen, plain, hook = Seen(), Seen(), Now()
    run(hook, seen)
    run(plain)
    assert hook.metrics == [{"count/samples": 4.0}]
    assert seen.weights == plain.weights


def test_a_hook_evaluates_by_itself_with_the_loop(run):
    class Again(Hook):
        def after_val_epoch(self, runner, metrics=None):
            loop = runner.val_loop
            for index, batch in enumerate(loop.dataloader):
                loop.run_iter(index, batch)
            self.metrics = loop.evaluator.evaluate(len(loop.dataloader.dataset))

    again = Again()
    run(again, limit=1)
    assert again.metrics == {"count/samples": 4.0}


def test_a_subclass_decides_when_schedulers_step(run):
    class EverySecond(ParamSchedulerHook):
        def after_train_epoch(self, runner):
            if self.every_n_epochs(runner, 2):
                super().after_train_epoch(runner)

    seen = Seen()
    run(
        seen,
        default_hooks={"param_scheduler": EverySecond()},
        param_scheduler={"type": "StepLR", "step_size": 1, "gamma": 0.5},
        limit=4,
    )
    assert seen.rates == [0.1, 0.05, 0.05, 0.025]


def test_a_subclass_without_changes_is_stepped_once(run):
    class Named(ParamSchedulerHook):
        def before_train(self, runner):
            self.began = True

    seen, named = Seen(), Named()
    schedule = {"type": "StepLR", "step_size": 1, "gamma": 0.5}
    run(seen, default_hooks={"param_scheduler": named}, param_scheduler=schedule)
    assert seen.rates == [0.05, 0.025, 0.025]  # A schedule ends with the training.
    assert named.began


def test_a_training_by_iterations_is_one_epoch_to_a_schedule_by_epochs(run):
    seen = Seen()
    schedule = {"type": "MultiStepLR", "milestones": [1, 2], "by_epoch": True}
    run(seen, by_epoch=False, limit=7, param_scheduler=schedule)
    assert seen.rates == [0.1]  # It ends when the epoch does.


class HalfAverage(ExponentialMovingAverage):
    def avg_func(self, averaged_param, source_param, steps):
        averaged_param.lerp_(source_param, 0.5)


def test_an_average_of_ones_own_is_used_saved_and_resumed(run, tmp_path):
    class Look(Hook):
        priority = "LOWEST"

        def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.evaluated = float(runner.model.linear.weight.detach())

    MODELS.register_module(module=HalfAverage, force=True)
    look, seen = Look(), Seen()
    run({"type": "EMAHook", "ema_type": "HalfAverage"}, look, seen, limit=2)
    wanted = seen.weights[0]
    for weight in seen.weights[1:]:
        wanted = (wanted + weight) / 2
    assert look.evaluated == pytest.approx(wanted, rel=1e-5)
    saved = torch.load(tmp_path / "epoch_2.pth", weights_only=True)
    assert float(saved["state_dict"]["linear.weight"]) == pytest.approx(wanted, rel=1e-5)
    raw = saved["ema_state_dict"]["module.linear.weight"]
    assert float(raw) == pytest.approx(seen.weights[-1], rel=1e-5)
    whole, resumed = Seen(), Seen()
    run({"type": "EMAHook", "ema_type": "HalfAverage"}, resumed, look, limit=3, resume=True)
    after = look.evaluated
    run({"type": "EMAHook", "ema_type": "HalfAverage"}, whole, look, limit=3)
    assert resumed.weights == whole.weights[4:]
    assert after == pytest.approx(look.evaluated, rel=1e-5)


def test_a_subclass_leaves_the_average_out_of_validations(run):
    class OnOrigin(EMAHook):
        def before_val_epoch(self, runner): ...
        def after_val_epoch(self, runner, metrics=None): ...

    class Look(Hook):
        def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.evaluated = float(runner.model.linear.weight.detach())

    look, seen = Look(), Seen()
    run(OnOrigin(momentum=0.5), look, seen, limit=2)
    assert look.evaluated == seen.weights[-1]


def test_an_unknown_average_is_refused_with_the_nearest():
    with pytest.raises(Exception, match="'ExponentialMovingAverag'.*'ExponentialMovingAverage'"):
        EMAHook(ema_type="ExponentialMovingAverag")


def test_hooks_of_a_project_are_found_by_the_default_scope(run, monkeypatch):
    project, hooks = ModuleType("toyproject"), ModuleType("toyproject.hooks")
    project.__path__ = []
    project.__spec__ = __import__("importlib.machinery").machinery.ModuleSpec("toyproject", None)
    registry = ModuleType("toyproject.registry")
    for module in (project, hooks, registry):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    registry.__dict__["Registry"], registry.__dict__["PARENT"] = Registry, HOOKS
    exec("TOYS = Registry('hook', parent=PARENT, locations=['toyproject.hooks'])", vars(registry))
    try:
        assert registry.TOYS.scope == "toyproject"

        @registry.TOYS.register_module()
        class IterTimerHook(Hook):
            """Has the name of one of MMEngine's; the project's own comes first."""

        runner = run({"type": "IterTimerHook"}, default_scope="toyproject", limit=1)
        assert isinstance(runner.hooks[-1], IterTimerHook)
    finally:
        HOOKS._children.pop("toyproject", None)


def test_a_subclass_of_the_timer_finds_its_names(run):
    class Timer(IterTimerHook):
        def _after_iter(self, runner, batch_idx, data_batch=None, outputs=None, mode="train"):
            assert self.t > 0
            assert self.start_iter == 0
            assert self.time_sec_tot == 0

    run(default_hooks={"timer": Timer()}, limit=1)


def test_several_groups_show_the_rate_that_was_set():
    model = Net()
    groups = [{"params": [model.linear.weight], "lr": 0.01}, {"params": [model.linear.bias]}]
    wrapper = OptimWrapper(torch.optim.SGD(groups, lr=0.1))
    assert wrapper.get_lr() == {"lr": [0.01, 0.1], "base_lr": [0.1]}


@pytest.mark.parametrize("name", ["WandbVisBackend", "MLflowVisBackend"])
def test_backends_that_are_not_offered_name_the_native_way(run, name):
    with pytest.raises(KeyError, match=f"{name} is not offered.*hookloop.hooks.Write"):
        run(visualizer={"type": "Visualizer", "vis_backends": [{"type": name}]})


def test_a_native_writer_gets_the_numbers_of_a_runner(run, tmp_path):
    run(WriteCSV(), limit=1)
    (table,) = tmp_path.glob("*.csv")
    assert "loss" in table.read_text().splitlines()[0]
