"""The emloop tutorial: its code and its configs, verbatim but for imports, run."""

import logging
import sys
import textwrap
import types

import pytest
import torch
import yaml
from tests.tiny import make_data, make_model

from hookloop import Trainer, dialects
from hookloop.errors import HookError
from hookloop_dialects.emloop import AbstractHook, create_hooks
from hookloop_dialects.emloop.hooks import ComputeStats, StopAfter

FIRST = """
hooks:
  - ComputeStats:
      variables: [loss]

  - LogVariables
"""

OUTSIDE = """
hooks:
  - my_project.hooks.MyHook
"""

ARGUMENTS = """
hooks:
  - my_project.hooks.MyHook:
      arg1: 10
      arg2: ['a','b']
"""

STOPPER = """
    import logging
    from emloop.hooks.abstract_hook import AbstractHook, TrainingTerminated

    class EpochStopperHook(AbstractHook):
        def __init__(self, epoch_limit: int, **kwargs):
            super().__init__(**kwargs)
            self._epoch_limit = epoch_limit

        def after_epoch(self, epoch_id: int, **kwargs) -> None:
            if epoch_id >= self._epoch_limit:
                logging.info('EpochStopperHook triggered')
                raise TrainingTerminated('Training terminated after epoch {}'.format(epoch_id))
"""

REGULAR = """
hooks:
  # compute mean loss after each epoch
  - ComputeStats:
      variables: [loss]

  # log the results to the standard python logging, csv and tensorboard
  - LogVariables
  - WriteCSV
  - LogProfile
  - emloop_tensorflow.hooks.WriteTensorboard

  # save the best model
  - SaveBest

  # allow interrupting with CTRL+C
  - CatchSigint

  # stop after 100 epochs
  - StopAfter:
      epochs: 100
"""


class MyHook(AbstractHook):
    """The hook outside of emloop that the tutorial configures."""

    def __init__(self, arg1=None, arg2=None, **kwargs):
        super().__init__(**kwargs)
        self.given = {"arg1": arg1, "arg2": arg2, **kwargs}


@pytest.fixture
def my_project(monkeypatch):
    package, module = types.ModuleType("my_project"), types.ModuleType("my_project.hooks")
    module.MyHook = MyHook
    monkeypatch.setitem(sys.modules, "my_project", package)
    monkeypatch.setitem(sys.modules, "my_project.hooks", module)


def make_trainer(hooks, out, model=None):
    model = model or make_model()
    return Trainer(
        model,
        train_data=make_data(),
        val_data=make_data(4),
        data={"test": make_data(4)},
        loss=torch.nn.functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        hooks=hooks,
        default_hooks=False,
        run_dir=out,
    )


def run_document(text, out, *others):
    """Train with the hooks of a config, and further ones."""
    model = make_model()
    hooks = create_hooks(
        yaml.safe_load(text), model=model, dataset=make_data(), output_dir=str(out)
    )
    trainer = make_trainer([*hooks, *others], out, model)
    trainer.train()
    return trainer


def test_the_first_config_logs_the_mean_loss_of_each_epoch(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        run_document(FIRST, tmp_path / "run", StopAfter(epochs=2))
    lines = [line.split(":")[0] for line in caplog.messages if line.startswith("\t")]
    assert lines == ["\ttrain loss mean", "\tvalid loss mean"] * 3  # The zeroth epoch and two more.


@pytest.mark.parametrize(
    ("config", "given"),
    [(OUTSIDE, {"arg1": None, "arg2": None}), (ARGUMENTS, {"arg1": 10, "arg2": ["a", "b"]})],
)
def test_a_hook_of_ones_own_is_made_with_its_arguments_and_what_emloop_supplies(
    config, given, my_project
):
    (hook,) = create_hooks(yaml.safe_load(config), model="the model", dataset="the data")
    supplied = {"model": "the model", "dataset": "the data", "output_dir": None}
    assert hook.given == given | supplied


def test_the_epoch_stopper_stops_after_its_epoch(tmp_path):
    names = {}
    with dialects.alias("emloop"):
        exec(textwrap.dedent(STOPPER), names)
    trainer = make_trainer([names["EpochStopperHook"](epoch_limit=3)], tmp_path / "run")
    outcome = trainer.train()
    assert (outcome.status, outcome.reason) == ("stopped", "Training terminated after epoch 3")
    assert trainer.run.progress.epoch == 3


def test_batch_data_holds_sources_and_outputs(tmp_path):
    class Look(AbstractHook):
        def after_batch(self, stream_name, batch_data):
            seen.append((stream_name, {name: len(value) for name, value in batch_data.items()}))

    seen = []
    model = torch.nn.Linear(4, 1)

    def step(run, batch):
        prediction = run.model(batch["images"])
        return {
            "loss": (prediction[:, 0] - batch["labels"]).square().mean(),
            "prediction": prediction,
        }

    batch = {"images": torch.ones(2, 4), "labels": torch.ones(2)}
    Trainer(
        model,
        train_data=[batch],
        step=step,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
        hooks=[Look()],
        default_hooks=False,
        run_dir=tmp_path / "run",
    ).train()
    assert seen == [("train", {"images": 2, "labels": 2, "loss": 2, "prediction": 2})] * 2


def test_epoch_data_begins_empty_for_each_stream_and_is_shared(tmp_path):
    class Look(AbstractHook):
        def after_epoch(self, epoch_id, epoch_data):
            seen.append({stream: dict(data) for stream, data in epoch_data.items()})

    seen = []
    hooks = [Look(), ComputeStats(["loss"]), Look()]
    trainer = make_trainer([*hooks, StopAfter(epochs=1)], tmp_path / "run")
    trainer.train()
    assert seen[0] == {"train": {}, "valid": {}}
    assert set(seen[1]["train"]["loss"]) == set(seen[1]["valid"]["loss"]) == {"mean"}


def test_log_variables_before_compute_stats_cannot_reach_training(tmp_path):
    hooks = yaml.safe_load(FIRST)
    hooks["hooks"].reverse()
    trainer = make_trainer(create_hooks(hooks), tmp_path / "run")
    with pytest.raises(HookError, match="list 'compute_stats' before 'log_variables'"):
        trainer.train(max_epochs=1)
    assert trainer.run.progress.iter == 0


@pytest.mark.slow
def test_the_regular_configuration_runs(tmp_path, caplog):
    out = tmp_path / "run"
    with caplog.at_level(logging.INFO):
        trainer = run_document(REGULAR, out)
    assert trainer.run.outcome.status == "stopped"
    assert trainer.run.progress.epoch == 100
    rows = (out / "training.csv").read_text().splitlines()
    assert rows[0] == '"epoch_id",train_loss,valid_loss'
    assert [row.split(",")[0] for row in rows[1:]] == [str(epoch) for epoch in range(101)]
    assert (out / "model_best.pth").is_file()
    assert list(out.glob("events.out.tfevents*"))
    trace = yaml.safe_load((out / "trace.yaml").read_text())
    assert (trace["epochs_done"], trace["exit_status"]) == (100, 0)
    timed = [line.split(":")[0] for line in caplog.messages if line.startswith("\tT ")]
    assert timed == ["\tT train", "\tT valid", "\tT read data", "\tT hooks"] * 101
