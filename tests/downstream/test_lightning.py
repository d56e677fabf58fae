"""With the real Lightning installed: the record is true, and its own classes run in our Trainer.

``make downstream`` runs this in an environment of its own; elsewhere it is skipped.
"""

import importlib.util
import json

import pytest

if importlib.util.find_spec("lightning") is None:
    pytest.skip("only `make downstream` installs lightning", allow_module_level=True)

import torch
from lightning.pytorch import callbacks
from tests.alike import assert_alike
from tests.downstream import record_lightning
from tests.downstream.lightning_scenarios import SCENARIOS, data, network, train_ours

from hookloop import Trainer
from hookloop.errors import HookError
from hookloop.hooks import StepSchedules
from hookloop.trainer.adapters import dialect_of_class

pytestmark = pytest.mark.filterwarnings("ignore")  # The real one warns a lot.

RECORDED = json.loads(record_lightning.RECORD.read_text())


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_record_is_what_lightning_does(name):
    found = record_lightning.record(SCENARIOS[name])
    assert_alike(RECORDED[name], json.loads(json.dumps(found)))


@pytest.mark.parametrize("name", SCENARIOS)
def test_callbacks_on_the_real_base_class_do_in_our_trainer_what_they_do_in_its_own(name, tmp_path):
    found = train_ours(SCENARIOS[name], record_lightning.NAMES, tmp_path / "run")
    assert_alike(RECORDED[name], json.loads(json.dumps(found)))


def train(*hooks, schedule=False, model=None, **options):
    model = model or network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    trainer = Trainer(
        model, train_data=data(), val_data=data(8), loss=torch.nn.functional.mse_loss,
        optimizer=optimizer, hooks=[*hooks, StepSchedules()], default_hooks=False, run_dir="run",
        schedule=torch.optim.lr_scheduler.StepLR(optimizer, 1) if schedule else None,
        **({"max_epochs": 2} | options),
    )  # fmt: skip
    trainer.train()
    return trainer


def test_it_is_recognised_under_both_names_of_the_package():
    import pytorch_lightning

    for base in (callbacks.Callback, pytorch_lightning.Callback):
        assert dialect_of_class(type("Mine", (base,), {})).name == "lightning"


def test_the_rate_and_the_momentum_are_logged():
    monitor = callbacks.LearningRateMonitor("step", log_momentum=True)
    trainer = train(monitor, schedule=True, setup={"config": {"log_every_n_steps": 1}})
    assert trainer.run.metrics.latest("lr-SGD") == pytest.approx(1e-6)
    assert trainer.run.metrics.latest("lr-SGD-momentum") == pytest.approx(0.9)


def test_a_timer_ends_the_training_and_is_resumed():
    timer = callbacks.Timer(duration={"seconds": 0})
    trainer = train(timer)
    assert trainer.run.outcome.status == "stopped"
    adapter = next(hook for hook in trainer.run.hooks if hook.name == "timer")
    assert adapter.state_dict() == timer.state_dict()


def test_a_backbone_is_frozen_and_trained_later():
    model = torch.nn.Sequential()
    model.backbone = torch.nn.Linear(4, 8)
    model.head = torch.nn.Linear(8, 1)
    before = model.backbone.weight.detach().clone()
    seen = []

    class Tune(callbacks.BaseFinetuning):
        def freeze_before_training(self, pl_module):
            self.freeze(pl_module.backbone)

        def finetune_function(self, pl_module, epoch, optimizer):
            seen.append(torch.equal(pl_module.backbone.weight, before))
            if epoch == 1:
                self.unfreeze_and_add_param_group(pl_module.backbone, optimizer, lr=0.01)

    head = torch.optim.SGD(model.head.parameters(), lr=0.1)
    Trainer(
        model, train_data=data(), loss=torch.nn.functional.mse_loss, optimizer=head, max_epochs=2,
        hooks=[Tune()], default_hooks=False, run_dir="run",
    ).train()  # fmt: skip
    assert seen == [True, True]
    assert not torch.equal(model.backbone.weight, before)


def test_weights_are_pruned():
    trainer = train(callbacks.ModelPruning("l1_unstructured", amount=0.5))
    weights = trainer.run.model[0].weight
    assert 0.4 < float((weights == 0).float().mean()) < 0.9


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: callbacks.ModelCheckpoint(monitor="val_acc", mode="max"),
         r"SaveCheckpoint\(every='1 epochs', best='val/acc', rule='greater'\)"),
        (lambda: callbacks.ModelCheckpoint(monitor="val_loss", save_top_k=3),
         r"best='val/loss', rule='less', keep_best=3\)"),
        (lambda: callbacks.ModelCheckpoint(every_n_train_steps=5, save_top_k=-1),
         r"SaveCheckpoint\(every='5 iters', keep=None\)"),
        (callbacks.RichProgressBar, "ShowProgress"),
        (callbacks.TQDMProgressBar, "ShowProgress"),
        (lambda: callbacks.StochasticWeightAveraging(0.1), "AverageWeights"),
        (callbacks.EMAWeightAveraging, "AverageWeights"),
        (lambda: callbacks.GradientAccumulationScheduler({0: 2}), "accumulate="),
        (callbacks.ModelSummary, "CountComplexity"),
        (callbacks.RichModelSummary, "CountComplexity"),
        (callbacks.BatchSizeFinder, "batch size"),
        (callbacks.LearningRateFinder, "learning rate"),
        (lambda: callbacks.OnExceptionCheckpoint("."), "on_exception=True"),
        (lambda: callbacks.ThroughputMonitor(len), "RecordThroughput"),
    ],
)  # fmt: skip
def test_what_replaces_a_part_of_lightnings_engine_is_rejected_with_the_native_hook(make, advice):
    with pytest.raises(HookError, match=advice):
        train(make())
