"""Every argument and config key of MMEngine's runner is carried out or rejected by name."""

import inspect
import logging

import pytest
import torch
from tests.mmengine.parts import Net, Numbers, Seen, collate

from hookloop.errors import ArgumentError, HookloopError, ModelError
from hookloop_mmengine.hooks import Hook
from hookloop_mmengine.loops import IterBasedTrainLoop
from hookloop_mmengine.model import BaseDataPreprocessor
from hookloop_mmengine.registry import FUNCTIONS
from hookloop_mmengine.runner import Runner


class Precision(Net):
    def val_step(self, data):
        output = self.linear(torch.ones(1, 1))
        self.dtypes = [*getattr(self, "dtypes", []), output.dtype]
        return super().val_step(data)

    test_step = val_step


@pytest.mark.parametrize("phase", ["val", "test"])
def test_an_evaluation_in_half_precision(make, phase):
    model = Precision()
    runner = make(model=model, **{f"{phase}_cfg": {"fp16": True}})
    getattr(runner, phase)()
    assert set(model.dtypes) == {torch.bfloat16}
    runner = make(model=(model := Precision()))
    getattr(runner, phase)()
    assert set(model.dtypes) == {torch.float32}


def test_compiled_and_recomputing_steps_train_as_plain_ones(run, monkeypatch):
    # Torch's compiler takes many seconds to start.
    monkeypatch.setattr(torch, "compile", lambda step, backend: step)
    expected = run(plain := Seen())
    seen = Seen()
    cfg = {"compile": {"backend": "eager"}, "activation_checkpointing": ["linear"]}
    runner = run(seen, cfg=cfg)
    assert seen.weights == plain.weights
    assert hasattr(runner.model.linear.forward, "recomputes")
    assert "train_step" in vars(runner.model)
    assert "train_step" not in vars(expected.model)


@FUNCTIONS.register_module(force=True)
def note_worker(worker_id, path):
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"worker {worker_id}\n")


def test_a_function_for_workers_is_called_in_them(run, tmp_path):
    path = tmp_path / "notes"
    loader = {
        "dataset": Numbers(), "batch_size": 2, "num_workers": 1, "collate_fn": collate,
        "worker_init_fn": {"type": "note_worker", "path": str(path)},
    }  # fmt: skip
    run(train_dataloader=loader, limit=1)
    assert path.read_text() == "worker 0\n"
    with pytest.raises(KeyError, match="worker_init_fn: there is no function 'no_such'"):
        Runner.build_dataloader(loader | {"worker_init_fn": {"type": "no_such"}})
    with pytest.raises(TypeError, match="worker_init_fn should be a dict with `type`"):
        Runner.build_dataloader(loader | {"worker_init_fn": 3})


@pytest.mark.parametrize("sampler", [None, {"type": "DefaultSampler", "shuffle": True}])
def test_an_epoch_of_fewer_batches(run, sampler):
    seen = Seen()
    loader = {"dataset": Numbers(), "batch_size": 1, "collate_fn": collate, "sampler": sampler}
    runner = run(seen, train_dataloader=loader | {"num_batch_per_epoch": 2}, limit=2)
    assert sorted(seen.inputs) == [0, 0, 1, 1]
    assert runner.train_dataloader.dataset.values.shape == (4, 1)  # Shown as it is.
    own = {"batch_sampler": {"type": "BatchSampler", "drop_last": False}}
    with pytest.raises(ValueError, match="num_batch_per_epoch needs batch_size"):
        Runner.build_dataloader({"dataset": Numbers(), "num_batch_per_epoch": 1, **own})


def test_a_loader_without_a_length_trains(run):
    class Endless(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                yield {"inputs": torch.ones(1)}

    loader = torch.utils.data.DataLoader(Endless(), batch_size=2, collate_fn=collate)
    seen = Seen()
    run(seen, by_epoch=False, limit=3, train_dataloader=loader)
    assert seen.inputs == [2, 2, 2]


class Outputs(Hook):
    def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.val = outputs

    def after_test_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.test = outputs


class ReturnsDict(Net):
    def val_step(self, data):
        return {"scores": 1.0}

    test_step = val_step


def test_outputs_are_what_the_step_returns(run):
    hook = Outputs()
    run(hook, model=ReturnsDict(), limit=1).test()
    assert hook.val == hook.test == {"scores": 1.0}


# --- what is done, with what shows it, or rejected, by argument ----------------------------------

REJECTED = {
    "model": ({"model": 3}, TypeError),
    "train_cfg": ({"train_cfg": {"type": "MyLoop", "max_epochs": 1}}, ValueError),
    "val_cfg": ({"val_cfg": {"type": "MyValLoop"}}, ValueError),
    "test_cfg": ({"test_cfg": {"fp8": True}}, TypeError),
    "optim_wrapper": ({"optim_wrapper": 3}, TypeError),
    "param_scheduler": ({"param_scheduler": 3}, TypeError),
    "default_hooks": ({"default_hooks": {"timr": None}}, AssertionError),
    "launcher": ({"launcher": "horovod"}, ValueError),
    "env_cfg": ({"env_cfg": {"cuda": 1}}, ArgumentError),
    "randomness": ({"randomness": {"sed": 1}}, TypeError),
    "log_processor": ({"log_processor": {"windows": 1}}, TypeError),
    "log_level": ({"log_level": "LOUD"}, ValueError),
    "auto_scale_lr": ({"auto_scale_lr": {"enable": True}}, (KeyError, AssertionError)),
    "load_from": ({"load_from": "no_such.pth"}, HookloopError),
    "cfg": ({"cfg": {"efficient_conv_bn_eval": "all"}}, ModelError),
}


@pytest.mark.parametrize("name", REJECTED)
def test_a_wrong_value_is_rejected(run, name):
    options, error = REJECTED[name]
    with pytest.raises(error):
        run(limit=1, **options) if "train_cfg" not in options else run(**options)


def test_each_argument_has_an_effect(run, tmp_path):
    class Halve(BaseDataPreprocessor):
        def forward(self, data, training=False):
            return {"inputs": [value / 2 for value in data["inputs"]]}

    class Inputs(Net):
        def forward(self, inputs, mode="tensor"):
            self.largest = max(getattr(self, "largest", 0.0), *(float(v.max()) for v in inputs))
            return super().forward(inputs, mode)

    class Wanted(Hook):
        def after_train(self, runner):
            self.level, self.name = runner.logger.level, runner.experiment_name
            self.lr = runner.optim_wrapper.param_groups[0]["lr"]

    hook = Wanted()
    model = Inputs()
    model.data_preprocessor = Halve()
    runner = run(
        hook,
        model=model,
        train_cfg={"type": IterBasedTrainLoop, "max_iters": 2, "val_interval": 1},
        auto_scale_lr={"enable": True, "base_batch_size": 4},
        env_cfg={"dist_cfg": {"backend": "nccl"}},
        experiment_name="named",
        randomness={"seed": 5},
        log_processor={"window_size": 3},
        log_level="ERROR",
        launcher="none",
        default_scope="mmengine",
    )  # fmt: skip
    assert (hook.level, hook.lr) == (logging.ERROR, 0.05)
    assert hook.name.startswith("named_")
    assert (runner.seed, runner.log_processor.window_size, runner.iter) == (5, 3, 2)
    assert model.largest == 1.5
    assert runner.val() == {"count/samples": 4.0}


def test_the_arguments_are_those_of_mmengine():
    # Tested above, or in the files of the parts: loaders, evaluators, hooks, visualizers, resume.
    elsewhere = {
        "work_dir", "train_dataloader", "val_dataloader", "test_dataloader", "val_evaluator",
        "test_evaluator", "custom_hooks", "data_preprocessor", "resume", "visualizer",
        "default_scope", "experiment_name",
    }  # fmt: skip
    assert {*REJECTED, *elsewhere} == set(inspect.signature(Runner).parameters)
