"""One suite over every dialect: what each of them owes to hooks that were written for it."""

import importlib
import inspect
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer

from hookloop import dialects
from hookloop.dialects.adapter import Catalogued
from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.vissl import ClassyHook

DOCS = Path(__file__).parents[2] / "docs" / "dialects"


def emloop_hook(act):
    from hookloop_dialects.emloop import AbstractHook

    class Foreign(AbstractHook):
        def after_batch(self, stream_name, batch_data):
            if stream_name == "train":
                act(self, self._main_loop)

    return Foreign, ["SkipZerothEpoch"]


def vissl_hook(act):
    class Foreign(ClassyHook):
        on_start = on_phase_start = on_phase_end = on_end = ClassyHook._noop

        def on_step(self, task):
            if task.train:
                act(self, task)

    return Foreign, []


def imix_hook(act):
    from hookloop_dialects.imix import HookBase

    class Foreign(HookBase):
        def after_train_iter(self):
            act(self, self.trainer)

    return Foreign, []


def mmengine_hook(act):
    from hookloop_mmengine.hooks import Hook as Base

    class Foreign(Base):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            act(self, runner)

    return Foreign, []


def pointrix_hook(act):
    from hookloop_dialects.pointrix import Hook as Base

    class Foreign(Base):
        def after_train_iter(self, trainner):
            act(self, trainner)

    return Foreign, []


def lightning_hook(act):
    with dialects.alias("lightning"):
        from lightning.pytorch import Callback

    class Foreign(Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            act(self, trainer)

    return Foreign, []


def transformers_hook(act):
    with dialects.alias("transformers"):
        from transformers import TrainerCallback

    class Foreign(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            act(self, args)

    return Foreign, []


MAKERS = {
    "emloop": emloop_hook,
    "imix": imix_hook,
    "lightning": lightning_hook,
    "mmengine": mmengine_hook,
    "pointrix": pointrix_hook,
    "transformers": transformers_hook,
    "vissl": vissl_hook,
}
# How a file of each system imports its base class.
IMPORTS = {
    "emloop": ["from emloop.hooks.abstract_hook import AbstractHook, TrainingTerminated",
               "from emloop.types import EpochData", "import emloop as el"],
    "imix": ["from imix.engine.hooks.base_hook import HookBase, PriorityStatus",
             "from imix.engine.hooks.builder import HOOKS"],
    "lightning": ["from lightning.pytorch.callbacks import Callback, EarlyStopping, LambdaCallback",
                  "from lightning.pytorch.callbacks.callback import Callback",
                  "import pytorch_lightning as pl", "pl.Trainer, pl.LightningModule, pl.Callback",
                  "from pytorch_lightning.utilities import rank_zero_info, rank_zero_only",
                  "from lightning.pytorch.utilities.rank_zero import rank_zero_warn",
                  "from pytorch_lightning.utilities.exceptions import MisconfigurationException",
                  "from lightning.pytorch.utilities.types import STEP_OUTPUT",
                  "from lightning.pytorch.trainer.states import RunningStage, TrainerFn",
                  "from pytorch_lightning.loggers import TensorBoardLogger, WandbLogger",
                  "from lightning.fabric.utilities.rank_zero import rank_zero_only"],
    "mmengine": ["from mmengine.hooks import Hook", "from mmengine.registry import HOOKS"],
    "pointrix": ["from pointrix.hook import HOOK_REGISTRY, Hook",
                 "from pointrix.logger.writer import Logger, ProgressLogger, Writer, parse_writer"],
    "transformers": ["from transformers import TrainerCallback, TrainerControl, TrainerState",
                     "from transformers import IntervalStrategy, TrainingArguments",
                     "from transformers.trainer_callback import EarlyStoppingCallback",
                     "from transformers.training_args import TrainingArguments",
                     "from transformers.trainer_utils import IntervalStrategy",
                     "from transformers.utils import logging"],
    "vissl": ["from classy_vision.hooks.classy_hook import ClassyHook",
              "from classy_vision.hooks import ClassyHookState, register_hook",
              "from classy_vision import tasks",
              "from classy_vision.generic.distributed_util import is_primary",
              "from vissl.hooks import SSLClassyHookFunctions, default_hook_generator"],
}  # fmt: skip

every_dialect = pytest.mark.parametrize("name", sorted(dialects.installed()))


def make_hooks(name, act, count=1):
    kind, others = MAKERS[name](act)
    rows = dialects.installed()[name].catalogue()
    return [kind() for _ in range(count)] + [_load(rows[other])() for other in others]


def _load(path):
    module, kind = path.split(":")
    return getattr(importlib.import_module(module), kind)


def train(tmp_path, hooks, **options):
    trainer = make_trainer(hooks=hooks, **({"run_dir": tmp_path / "run"} | options))
    trainer.train()
    return trainer


def test_every_dialect_is_held_to_the_contract():
    assert set(MAKERS) == set(IMPORTS) == set(dialects.installed())


@every_dialect
def test_its_hooks_are_recognised_and_called_once_per_iteration(name, tmp_path):
    calls = []
    hooks = make_hooks(name, lambda hook, facade: calls.append(hook))
    assert dialects.dialect_of(hooks[0]).name == name
    train(tmp_path, hooks, max_epochs=2, val_data=make_data(4))
    assert calls == [hooks[0]] * 6


@every_dialect
def test_a_hook_that_only_looks_leaves_the_training_as_it_is(name, tmp_path):
    plain = train(tmp_path, [], run_dir=tmp_path / "plain", seed=1)
    seen = train(tmp_path, make_hooks(name, lambda hook, facade: None), seed=1)
    assert_same_bits(plain.run.model, seen.run.model)


@every_dialect
def test_what_a_hook_draws_at_random_the_training_does_not_notice(name, tmp_path):
    def draw(hook, facade):
        random.random()
        np.random.randn()
        torch.rand(1)

    def final(folder, hooks):
        model = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Dropout(0.5))
        data = make_data(shuffle=True)
        options = {"model": model, "train_data": data, "seed": 1, "max_epochs": 2}
        with torch.no_grad():
            for one in model.parameters():
                one.fill_(0.5)
        train(tmp_path, hooks, run_dir=tmp_path / folder, **options)
        return model

    plain = final("plain", make_hooks(name, lambda hook, facade: None))
    assert_same_bits(plain, final("drawing", make_hooks(name, draw)))
    hooks = make_hooks(name, draw)
    for hook in hooks:
        hook.takes_part_in_training = True  # As its class may declare.
    noisy = final("part", hooks)
    assert not torch.equal(noisy[0].weight, plain[0].weight)


@every_dialect
def test_an_unknown_attribute_is_rejected_with_the_hook_and_the_attribute(name, tmp_path):
    hooks = make_hooks(name, lambda hook, facade: facade.no_such_thing)
    with pytest.raises(HookError, match=r"'foreign' asks for \w+\.no_such_thing") as caught:
        train(tmp_path, hooks)
    assert isinstance(caught.value, AttributeError)  # So that hasattr and getattr work.


@every_dialect
def test_a_failing_hook_is_named_and_its_own_error_is_raised(name, tmp_path):
    def fail(hook, facade):
        raise RuntimeError("the user's own error")

    with pytest.raises(RuntimeError, match="the user's own error") as caught:
        train(tmp_path, make_hooks(name, fail))
    assert any("'foreign'" in note for note in caught.value.__notes__)
    assert any(entry.name == "fail" for entry in caught.traceback)


@every_dialect
def test_two_hooks_of_one_class_get_names_of_their_own(name, tmp_path):
    trainer = train(tmp_path, make_hooks(name, lambda hook, facade: None, count=2))
    names = [hook.name for hook in trainer.run.hooks]
    assert "foreign" in names and "foreign_2" in names
    assert len(set(names)) == len(names)


@every_dialect
def test_files_import_it_while_it_is_aliased(name):
    package = next(iter(dialects.installed()[name].packages))
    with dialects.alias(name):
        names = {}
        for line in IMPORTS[name]:
            exec(line, names)
        assert all(not inspect.ismodule(value) or value for value in names.values())
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(package)


@every_dialect
def test_its_catalogue_leads_to_classes_that_it_recognises(name):
    for row, path in dialects.installed()[name].catalogue().items():
        kind = _load(path)
        assert isinstance(kind, type), row
        assert inspect.getdoc(kind), row
        empty = object.__new__(kind) if not inspect.isabstract(kind) else None
        if empty is not None:
            assert dialects.dialect_of(empty).name == name, row


@every_dialect
def test_the_constructors_of_its_catalogue_are_documented(name):
    for row, path in dialects.installed()[name].catalogue().items():
        kind = _load(path)
        if "__init__" not in kind.__dict__ or name == "mmengine":
            continue
        doc = inspect.getdoc(kind)
        for parameter in list(inspect.signature(kind).parameters):
            assert f"{parameter}:" in doc, f"{row}: {parameter}"


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_its_page_names_every_hook_of_its_catalogue_and_its_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    for row in dialects.installed()[page.stem].catalogue():
        assert f"`{row}" in text, row
    for block in re.findall(r"```python\n(?!# Not run)(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, page.name, "exec"), {"__name__": "page"})


def test_a_wrong_signature_is_rejected_before_the_training():
    from hookloop_dialects.emloop import AbstractHook
    from hookloop_dialects.pointrix import Hook as PointrixHook

    class Lacking(AbstractHook):
        def after_epoch(self, epoch): ...

    class Greedy(PointrixHook):
        def before_train(self, trainner, more): ...

    with pytest.raises(HookError, match=r"after_epoch\(epoch_id=..., epoch_data=...\)"):
        make_trainer(hooks=[Lacking()])
    with pytest.raises(HookError, match=r"Greedy.before_train has the signature"):
        make_trainer(hooks=[Greedy()])


# --- every row of every catalogue -----------------------------------------------------------------


def board():
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter("board")


# How rows that need arguments are made; the others are made without any.
ARGUMENTS = {
    "AccumulateVariables": lambda: {"variables": ["loss"]},
    "Benchmark": lambda: {"batch_size": 4},
    "Check": lambda: {"variable": "loss", "required_min_value": 1e9, "max_epoch": 99},
    "CheckpointHook": lambda: {"checkpoint_folder": "."},
    "ClassificationMetrics": lambda: {"predicted_variable": "predicted", "gt_variable": "targets"},
    "ComputeStats": lambda: {"variables": ["loss"]},
    "ExponentialMovingAverageModelHook": lambda: {"decay": 0.9},
    "Flatten": lambda: {"variables": {"inputs": "flat"}},
    "LogDir": lambda: {"output_dir": "."},
    "LogitsToCsv": lambda: {"variable": "output", "class_names": "abc", "id_variable": "ids",
                            "output_file": "logits.csv"},
    "PlotLines": lambda: {"output_dir": ".", "variables": ["inputs"], "example_count": 1},
    "SaveBest": lambda: {"model": None, "on_save_failure": "ignore"},
    "SaveConfusionMatrix": lambda: {"output_dir": ".", "dataset": None, "labels_name": "targets",
                                    "predictions_name": "predicted"},
    "SaveEvery": lambda: {"model": None, "on_failure": "ignore"},
    "SaveFile": lambda: {"files": [], "output_dir": "."},
    "SaveLatest": lambda: {"model": None, "on_save_failure": "ignore"},
    "SaveMasks": lambda: {"mask_variable": "masks", "path_variable": "names"},
    "SequenceToCsv": lambda: {"variables": ["inputs"], "id_variable": "ids",
                              "output_file": "sequences.csv"},
    "StopAfter": lambda: {"epochs": 99},
    "TrainingTrace": lambda: {"output_dir": "."},
    "WriteCSV": lambda: {"output_dir": "."},
    "WriteTensorBoard": lambda: {"output_dir": "."},
    "WriteTensorboard": lambda: {"output_dir": "."},
    "cxflow_tensorflow.hooks.WriteTensorBoard": lambda: {"output_dir": "."},
    "emloop_tensorflow.hooks.WriteTensorBoard": lambda: {"output_dir": "."},
    "emloop_tensorflow.hooks.WriteTensorboard": lambda: {"output_dir": "."},
    "EvaluateHook": lambda: {"eval_function": lambda: {"accuracy": 1.0}},
    "ModelTensorboardHook": lambda: {"tb_writer": board()},
    "TensorboardPlotHook": lambda: {"tb_writer": board()},
    "SSLTensorboardHook": lambda: {"tb_writer": board(), "log_params": True,
                                   "log_params_gradients": True},
    "OutputCSVHook": lambda: {"folder": ".", "id_key": "ids"},
    "PreciseBatchNormHook": lambda: {"num_samples": 8},
    "TorchscriptHook": lambda: {"torchscript_folder": "."},
    "LogLossLrEtaHook": lambda: {"checkpoint_folder": "."},
}  # fmt: skip
# Rows that need another one before them in the list.
BEFORE = {"Check": "ComputeStats", "SaveBest": "ComputeStats", "SaveMasks": None}
# What is abstract, or needs a server, a model, data or a precision of its own; tested elsewhere.
LEFT_OUT = {"EveryNEpoch", "OnPlateau", "VisdomHook", "Fp16OptimizerHook", "LRSchedulerHook",
            "EMAIterHook", "EMAEpochHook", "ModelOutputMaskHook", "DINOHook", "DistillationHook",
            "IBOTHook", "MoCoHook", "SwAVMomentumHook"}  # fmt: skip

ROWS = [
    (name, row)
    for name, one in sorted(dialects.installed().items())
    if name != "mmengine"  # It has tests of its own.
    for row in one.catalogue()
    if row not in LEFT_OUT
]


def classify(run, batch):
    output = run.model(batch["input"])
    loss = torch.nn.functional.cross_entropy(output, batch["targets"])
    extra = {"predicted": output.argmax(1), "output": output, "inputs": batch["input"].detach()}
    return {"loss": loss, **extra, "masks": torch.ones(len(output), 2, 2)}


def classes(count):
    generator = torch.Generator().manual_seed(1)
    made = []
    for index in range(count):
        inputs = torch.randn(4, 4, generator=generator)
        ids = [f"{index}/{k}" for k in range(4)]
        made.append({"input": inputs, "targets": inputs[:, :3].argmax(1), "ids": ids, "names": ids})
    return made


def make_row(name, row):
    kind = _load(dialects.installed()[name].catalogue()[row])
    return kind(**ARGUMENTS[row]()) if row in ARGUMENTS else kind()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_row_trains_and_continues_from_a_checkpoint(name, row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def train_with(epochs, **options):
        rows = [BEFORE[row]] if BEFORE.get(row) else []
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 3))
        config = {"MODEL": {"MODEL_COMPLEXITY": {"INPUT_SHAPE": [4]}}}
        trainer = make_trainer(
            model=model,
            hooks=[*(make_row(name, one) for one in (*rows, row)), SaveCheckpoint()],
            train_data=classes(3),
            val_data=classes(2),
            step=classify,
            max_epochs=epochs,
            setup={"config": config},
            run_dir="run",
            **options,
        )
        return trainer.train(), trainer

    outcome, _ = train_with(1)
    assert outcome.status == "completed"
    outcome, trainer = train_with(2, resume=True)
    assert outcome.status == "completed" and trainer.run.progress.epoch == 2


# --- several systems in one run -----------------------------------------------------------------


class CountSteps(ClassyHook):
    """A hook of VISSL with a state."""

    on_start = on_phase_start = on_phase_end = on_end = ClassyHook._noop

    def __init__(self, order):
        super().__init__()
        self.order = order
        self.state.steps = 0

    def on_step(self, task):
        if task.train:
            self.state.steps += 1
            self.order.append(("vissl", task.iteration))


def mixed_hooks(order):
    from hookloop_dialects.emloop import AbstractHook
    from hookloop_dialects.emloop.hooks import ComputeStats, SaveBest, SkipZerothEpoch
    from hookloop_mmengine.hooks import Hook as MMHook

    class Native(Hook):
        def __init__(self):
            self.seen = 0

        def after_train_iter(self, run):
            self.seen += 1
            order.append(("native", run.progress.iter))

        def state_dict(self):
            return {"seen": self.seen}

        def load_state_dict(self, state):
            self.seen = state["seen"]

    class MMFirst(MMHook):
        priority = "HIGH"

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            order.append(("mmengine", runner.iter))

    class Emloop(AbstractHook):
        def after_batch(self, stream_name, batch_data):
            if stream_name == "train":
                order.append(("emloop", len(batch_data["loss"])))

    best = SaveBest(model=None, stream="valid", on_save_failure="ignore")
    return [
        Emloop(), Native(), CountSteps(order), MMFirst(),
        ComputeStats(["loss"]), best, SkipZerothEpoch(),
    ]  # fmt: skip


def mixed_train(directory, epochs, **options):
    order = []
    hooks = mixed_hooks(order)
    trainer = make_trainer(
        hooks=[*hooks, SaveCheckpoint(every="1 epoch")],
        val_data=make_data(4),
        max_epochs=epochs,
        run_dir=directory,
        seed=1,
        **options,
    )
    trainer.train()
    return trainer, hooks, order


def test_hooks_of_several_systems_act_in_one_run_as_promised(tmp_path):
    _, _, order = mixed_train(tmp_path / "run", 1)
    # MMEngine's by its priority, the others in the order given; each with its own counter.
    assert order[:4] == [("mmengine", 0), ("emloop", 4), ("native", 1), ("vissl", 1)]
    assert order[4:8] == [("mmengine", 1), ("emloop", 4), ("native", 2), ("vissl", 2)]


def test_hooks_of_several_systems_continue_with_their_state(tmp_path):
    mixed_train(tmp_path / "run", 1)
    resumed, hooks, order = mixed_train(tmp_path / "run", 3, resume=True)
    whole, same, _ = mixed_train(tmp_path / "whole", 3)
    assert_same_bits(resumed.run.model, whole.run.model)
    assert hooks[1].seen == same[1].seen == 9
    assert hooks[2].state.steps == same[2].state.steps == 9
    assert hooks[5]._best_value == same[5]._best_value
    assert order[0] == ("mmengine", 3)
    assert torch.equal(resumed.run.model[0].weight, whole.run.model[0].weight)


def test_rows_that_native_hooks_stand_for_are_made_of_them():
    from hookloop_dialects.vissl.hooks import GradClipHook

    row = GradClipHook(norm_type=2, max_norm=1)
    assert isinstance(row, Catalogued)
    trainer = make_trainer(hooks=[row], model=make_model())
    assert [line.hook for line in trainer.timetable()] == ["clip_gradients"]


def test_foreign_hooks_of_one_class_get_numbers():
    from hookloop_mmengine.hooks import Hook as MMHook

    trainer = make_trainer(hooks=[MMHook(), MMHook(), MMHook()])
    trainer.train()
    assert [hook.name for hook in trainer.run.hooks] == ["hook", "hook_2", "hook_3"]


def test_natives_and_foreign_hooks_keep_their_order():
    from hookloop_mmengine.hooks import Hook as MMHook

    calls = []

    def native(name, priority):
        method = lambda self, run: calls.append(name)  # noqa: E731
        return type(name, (Hook,), {"after_train_iter": method, "priority": priority})()

    def foreign(name, priority):
        method = lambda self, runner, **_: calls.append(name)  # noqa: E731
        return type(name, (MMHook,), {"after_train_iter": method, "priority": priority})()

    hooks = [native("C", 50), foreign("B", "ABOVE_NORMAL"), foreign("D", "NORMAL"), native("A", 0)]
    make_trainer(hooks=hooks, max_iters=1).train()
    assert calls == ["A", "B", "C", "D"]
