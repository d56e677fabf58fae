"""The runner's arguments in all their forms, beyond what the recorded scenarios compare."""

import json
from pathlib import Path

import pytest
import torch
from tests.downstream import mmengine_scenarios as scenarios
from torch import nn

from hookloop import dialects
from hookloop.errors import HookloopError
from hookloop_mmengine.config import Config
from hookloop_mmengine.evaluator import BaseMetric
from hookloop_mmengine.hooks import Hook
from hookloop_mmengine.model import BaseModel, BaseTTAModel
from hookloop_mmengine.optim import OptimWrapper, OptimWrapperDict
from hookloop_mmengine.registry import DATASETS, METRICS, MODELS
from hookloop_mmengine.runner import Runner

BASE = """
default_hooks = dict(logger=None, checkpoint=dict(type='CheckpointHook', interval=1))
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1, momentum=0.9))
"""
CONFIG = """
_base_ = './base.py'
model = dict(type='TinyNet', width=2)
work_dir = 'work'
train_dataloader = dict(
    batch_size=2, num_workers=0, dataset=dict(type='TinyData', count=6),
    sampler=dict(type='DefaultSampler', shuffle=True), collate_fn=dict(type='default_collate'))
val_dataloader = dict(
    batch_size=2, num_workers=0, dataset=dict(type='TinyData', count=4),
    sampler=dict(type='DefaultSampler', shuffle=False), collate_fn=dict(type='default_collate'))
test_dataloader = val_dataloader
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=2, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
val_evaluator = dict(type='TinyError', prefix='tiny')
test_evaluator = val_evaluator
optim_wrapper = dict(optimizer=dict(lr=0.05), clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=3),
    dict(type='MultiStepLR', milestones=[1], by_epoch=True)]
custom_hooks = [dict(type='EMAHook', momentum=0.1)]
randomness = dict(seed=3)
log_level = 'ERROR'
experiment_name = 'tiny'
"""


class TinyNet(BaseModel):
    def __init__(self, width=2, **kwargs):
        super().__init__(**kwargs)
        self.linear = nn.Linear(width, 1)

    def forward(self, inputs, targets=None, mode="tensor"):
        output = self.linear(inputs)
        if mode == "loss":
            return {"loss_mse": ((output - targets) ** 2).mean(), "size": output.abs().mean()}
        return list(zip(output, targets, strict=True)) if mode == "predict" else output


class TinyData(torch.utils.data.Dataset):
    metainfo = {"classes": ("a",)}  # noqa: RUF012

    def __init__(self, count):
        generator = torch.Generator().manual_seed(0)
        self.inputs = torch.randn(count, 2, generator=generator)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return {"inputs": self.inputs[index], "targets": self.inputs[index].sum(0, keepdim=True)}


class TinyError(BaseMetric):
    def process(self, data_batch, data_samples):
        self.results += [float((one - other).abs()) for one, other in data_samples]

    def compute_metrics(self, results):
        assert self.dataset_meta == {"classes": ("a",)}
        return {"error": sum(results) / len(results), "count": len(results), "all": results}


@pytest.fixture(autouse=True)
def registered():
    with dialects.alias("mmengine"):
        for registry, kind in ((MODELS, TinyNet), (DATASETS, TinyData), (METRICS, TinyError)):
            registry.register_module(module=kind, force=True)
        yield


@pytest.fixture
def config(tmp_path):
    (tmp_path / "base.py").write_text(BASE)
    (tmp_path / "config.py").write_text(CONFIG)
    return Config.fromfile(tmp_path / "config.py")


def test_a_config_file_is_trained_and_tested(config):
    runner = Runner.from_cfg(config)
    runner.train()
    metrics = runner.test()
    assert sorted(path.name for path in Path("work").glob("*.pth")) == [
        "epoch_1.pth",
        "epoch_2.pth",
    ]
    assert Path("work/config.py").is_file()
    assert metrics["tiny/count"] == 4
    assert len(metrics["tiny/all"]) == 4
    assert runner.message_hub.get_scalar("train/loss_mse")
    assert runner.message_hub.get_scalar("train/grad_norm")
    saved = torch.load("work/epoch_2.pth", weights_only=True)
    assert sorted(saved["state_dict"]) == ["linear.bias", "linear.weight"]
    assert saved["meta"]["epoch"] == 2


def test_options_of_a_command_line_change_a_config(config):
    config.merge_from_dict({"train_cfg.max_epochs": 1, "custom_hooks.0.momentum": 0.5})
    runner = Runner.from_cfg(config)
    runner.train()
    assert runner.epoch == 1
    assert [path.name for path in Path("work").glob("*.pth")] == ["epoch_1.pth"]


def test_weights_are_loaded_from_another_run(config):
    first = Runner.from_cfg(config)
    first.train()
    config.work_dir, config.load_from = "other", "work/epoch_2.pth"
    config.custom_hooks = []
    config.val_evaluator = config.test_evaluator = {"type": "TinyError"}
    second = Runner.from_cfg(config)
    second.val()
    # The file's state_dict holds the averaged weights, which the first run tested with.
    saved = torch.load("work/epoch_2.pth", weights_only=True)["state_dict"]
    assert torch.equal(second.model.linear.weight, saved["linear.weight"])


def test_iterations_over_an_endless_sampler(config):
    config.train_dataloader.sampler = {"type": "InfiniteSampler", "shuffle": True}
    config.train_cfg = {"type": "IterBasedTrainLoop", "max_iters": 7, "val_interval": 3}
    config.default_hooks = {
        "logger": None,
        "checkpoint": {"type": "CheckpointHook", "by_epoch": False, "interval": 5},
    }
    runner = Runner.from_cfg(config)
    runner.train()
    assert (runner.iter, runner.epoch) == (7, 0)
    assert sorted(path.name for path in Path("work").glob("*.pth")) == ["iter_5.pth", "iter_7.pth"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_mixed_precision(config, dtype):
    config.optim_wrapper.type = "AmpOptimWrapper"
    config.optim_wrapper.dtype = dtype
    runner = Runner.from_cfg(config)
    runner.train()
    scaler = torch.load("work/epoch_2.pth", weights_only=True)["optimizer"]["loss_scaler"]
    assert bool(scaler) == (dtype == "float16")


def test_several_optimizers_in_a_step_of_the_models_own():
    class Pair(BaseModel):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(2, 1), nn.Linear(2, 1)

        def train_step(self, data, optim_wrapper):
            inputs, targets = data
            losses = {}
            for name in ("one", "two"):
                with optim_wrapper[name].optim_context(self):
                    loss = ((getattr(self, name)(inputs) - targets) ** 2).mean()
                optim_wrapper[name].update_params(loss)
                losses[f"loss_{name}"] = loss.detach()
            return losses

        def forward(self, *args, **kwargs):
            raise NotImplementedError

    model = Pair()
    wrappers = OptimWrapperDict(
        one=OptimWrapper(torch.optim.SGD(model.one.parameters(), lr=0.1)),
        two=OptimWrapper(torch.optim.Adam(model.two.parameters(), lr=0.01)),
    )
    before = model.two.weight.detach().clone()
    runner = scenarios.make_runner(
        "work", **scenarios.without_validation(model=model, optim_wrapper=wrappers)
    )
    runner.train()
    assert not torch.equal(model.two.weight, before)
    assert runner.optim_wrapper.get_lr() == {"one.lr": [0.1], "two.lr": [0.01]}
    assert runner.message_hub.get_scalar("train/one.lr").current() == 0.1


def test_test_time_augmentation_wraps_the_model(config):
    class Mean(BaseTTAModel):
        def merge_preds(self, data_samples_list):
            merged = []
            for views in data_samples_list:
                assert len(views) == 2
                merged.append((sum(one for one, _ in views) / 2, views[0][1]))
            return merged

    MODELS.register_module(module=Mean, force=True)

    def twice(samples):
        stacked = {key: torch.stack([one[key] for one in samples]) for key in samples[0]}
        return {key: [value, value] for key, value in stacked.items()}

    config.test_dataloader.collate_fn = twice
    config.custom_hooks = [{"type": "PrepareTTAHook", "tta_cfg": {"type": "Mean"}}]
    runner = Runner.from_cfg(config)
    assert runner.test()["tiny/count"] == 4
    assert isinstance(runner.model, Mean)


def test_a_hook_changes_the_run_through_the_runner():
    class Changing(Hook):
        def before_save_checkpoint(self, runner, checkpoint):
            checkpoint["note"] = "mine"
            checkpoint["state_dict"] = {
                name: torch.zeros_like(value) for name, value in checkpoint["state_dict"].items()
            }

        def before_train(self, runner):
            runner.model = scenarios.make_model(init=5)
            runner.my_own = 3

    checkpoint = {"type": "CheckpointHook", "interval": 1}
    runner = scenarios.make_runner(
        "work", [Changing()], checkpoint, optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.0}}
    )
    runner.train()
    saved = torch.load("work/epoch_2.pth", weights_only=True)
    assert saved["note"] == "mine"
    assert not saved["model"]["linear.weight"].any()
    assert torch.equal(runner.model.linear.weight, scenarios.make_model(init=5).linear.weight)
    assert runner.my_own == 3


def test_validating_alone_works_with_save_best():
    checkpoint = {"type": "CheckpointHook", "save_best": "auto"}
    assert scenarios.make_runner("work", (), checkpoint).val() == {"acc": 0.1}


@pytest.mark.slow
def test_gradients_that_wait_for_a_step_survive_a_resume(config, caplog):
    config.merge_from_dict({"optim_wrapper.accumulative_counts": 2, "train_cfg.max_epochs": 4})

    def train(work_dir, *hooks, **options):
        config.merge_from_dict({"work_dir": work_dir, "custom_hooks": hooks, **options})
        runner = Runner.from_cfg(config)
        runner.train()
        return runner.model.linear

    class Stop(Hook):
        def before_train_epoch(self, runner):
            if runner.epoch == 1:  # After three losses; a step takes two.
                raise SystemExit

    whole = train("whole")
    with pytest.raises(SystemExit):
        train("cut", Stop())
    assert [path.name for path in Path("cut").glob("*.pth")] == ["epoch_1.pth"]
    resumed = train("cut", resume=True)
    assert torch.equal(resumed.weight, whole.weight)
    assert "resumes between two steps" not in caplog.text


def test_arguments_that_are_given_in_part_are_rejected():
    with pytest.raises(ValueError, match="should be all None or not None"):
        scenarios.make_runner("work", val_evaluator=None)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"custom_hooks": [Hook]}, TypeError, "instance of Hook or dict"),
        ({"custom_hooks": [{"type": "EMAHok"}]}, KeyError, "Did you mean 'EMAHook'?"),
        ({"custom_hooks": [{"type": "NPUProfilerHook"}]}, Exception, "needs an Ascend NPU"),
        ({"default_hooks": {"loger": None}}, AssertionError, "no 'loger' to remove"),
        ({"train_cfg": {"type": "MyLoop", "max_epochs": 1}}, ValueError, "is not offered"),
        ({"train_cfg": {"by_epoch": True, "max_iters": 3}}, ValueError, "needs max_epochs"),
        ({"launcher": "slrum"}, ValueError, "Did you mean 'slurm'"),
        ({"launcher": "slurm"}, HookloopError, "SLURM_PROCID, which is not set"),
        ({"launcher": "pytorch"}, HookloopError, "torchrun"),
    ],
)
def test_problems_are_reported_at_construction(options, error, message):
    with pytest.raises(error, match=message):
        scenarios.make_runner("work", **options)


def test_numbers_go_to_tensorboard(config):
    pytest.importorskip("tensorboard")
    config.visualizer = {
        "type": "Visualizer",
        "vis_backends": [{"type": "LocalVisBackend"}, {"type": "TensorboardVisBackend"}],
    }
    config.default_hooks = {"logger": {"type": "LoggerHook", "interval": 1}}
    runner = Runner.from_cfg(config)
    runner.train()
    home = Path(runner.log_dir) / "vis_data"
    assert list(home.glob("events.out.tfevents*"))
    assert json.loads((home / "scalars.json").read_text().splitlines()[0])["step"] == 1
