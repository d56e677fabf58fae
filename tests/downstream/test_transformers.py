"""With the real Transformers installed: the record is true, and its callbacks run in our Trainer.

``make downstream`` runs this in an environment of its own; elsewhere it is skipped.
"""

import importlib.util
import json

import pytest

if importlib.util.find_spec("transformers") is None:
    pytest.skip("only `make downstream` installs transformers", allow_module_level=True)

import torch
import transformers
from tests.alike import assert_alike
from tests.downstream import record_transformers
from tests.downstream.transformers_scenarios import SCENARIOS, Model, Samples, train_ours
from transformers.integrations import TensorBoardCallback

from hookloop import Trainer
from hookloop.errors import HookError

pytestmark = pytest.mark.filterwarnings("ignore")  # The real one warns a lot.

RECORDED = json.loads(record_transformers.RECORD.read_text())


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_record_is_what_transformers_does(name):
    found = record_transformers.record(SCENARIOS[name])
    assert_alike(RECORDED[name], json.loads(json.dumps(found)))


@pytest.mark.parametrize("name", SCENARIOS)
def test_callbacks_on_the_real_base_class_do_in_our_trainer_what_they_do_in_its_own(name, tmp_path):
    found = train_ours(SCENARIOS[name], record_transformers.NAMES, tmp_path / "run")
    assert_alike(RECORDED[name], json.loads(json.dumps(found)))


def train(*hooks, **config):
    model = Model()
    loader = torch.utils.data.DataLoader(Samples(12), batch_size=4)
    trainer = Trainer(
        model, train_data=loader, val_data=loader, max_epochs=2, hooks=hooks, run_dir="run",
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05), default_hooks=False,
        setup={"config": config},
    )  # fmt: skip
    trainer.train()
    return trainer


def test_its_printer_and_its_progress_bar_show_the_training(capsys):
    progress = transformers.trainer_callback.ProgressCallback()
    train(transformers.PrinterCallback(), progress, logging_steps=3)
    shown = capsys.readouterr()
    assert shown.out.count("'loss'") == 4  # Both show each of the two.
    assert "6/6" in shown.err


def test_its_default_flow_asks_for_what_the_loop_does_anyway():
    evaluated = []

    class Count(transformers.TrainerCallback):
        def on_evaluate(self, args, state, control, **kwargs):
            evaluated.append(state.global_step)

    trainer = train(transformers.DefaultFlowCallback(), Count(), logging_steps=2)
    assert evaluated == [3, 6]
    assert trainer.run.outcome.status == "completed"


def test_a_callback_that_reports_to_a_service_is_rejected_with_the_native_hook():
    with pytest.raises(HookError, match="WriteTensorBoard instead"):
        train(TensorBoardCallback())
