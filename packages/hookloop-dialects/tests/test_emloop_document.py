"""Every example of emloop's page on hooks, word for word, by the command line.

Not run: the two snippets that show what a config is "roughly translated to" are the code that
emloop runs for the config beside them; here that is `test_arguments_of_a_hook_in_a_module`.
"""

import signal
from pathlib import Path

import pytest
import torch
from tests.documents import YAML, hookloop, train, write
from tests.readback import csv_rows, tensorboard_points

from hookloop import Interrupted
from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.errors import ConfigError

pytestmark = pytest.mark.slow  # Each case is a run of the command line, or several trainings.

CONFIG = Path(__file__).parents[3] / "examples" / "emloop_document" / "config.yaml"

FIRST = """
hooks:
  - ComputeStats:
      variables: [loss]

  - LogVariables
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

# A hook as the page describes it; it writes down what it gets.
MY_HOOK = """
from emloop.hooks import AbstractHook


class MyHook(AbstractHook):
    def __init__(self, arg1=None, arg2=None, **kwargs):
        super().__init__(**kwargs)
        given = {name: type(value).__name__ for name, value in kwargs.items()}
        self.lines = [f"{arg1} {arg2} {given}"]

    def after_batch(self, stream_name, batch_data):
        self.lines.append(f"{stream_name} {sorted(batch_data)}")

    def after_epoch(self, epoch_id, epoch_data):
        self.lines.append(f"epoch {epoch_id} {({s: dict(v) for s, v in epoch_data.items()})}")

    def after_training(self, success):
        with open("seen.txt", "w") as file:
            file.write("\\n".join(self.lines))
"""


def seen():
    return Path("seen.txt").read_text().splitlines()


def test_first_example():
    write({"config.yaml": YAML + FIRST})
    printed = train("config.yaml", "max_epochs=2")
    assert printed.count("train/loss/mean: ") == 2
    assert printed.count(" val/loss/mean: ") == 2


@pytest.mark.parametrize("dialect", ["", ", dialect: emloop"])
def test_the_order_that_the_page_warns_of_is_rejected(dialect):
    write(
        {
            "config.yaml": f"""{YAML}
max_epochs: 1
hooks:
  - LogVariables: {{{dialect.strip(", ")}}}
  - ComputeStats: {{variables: [loss]{dialect}}}
"""
        }
    )
    result = hookloop("train", "config.yaml", "--run-dir", "run")
    assert result.exit_code != 0
    assert "before 'log_variables'" in result.output and "compute_stats" in result.output
    assert not list(Path("run").glob("*.pth"))


def test_a_hook_in_a_module():
    write(
        {
            "my_project/hooks.py": MY_HOOK,
            "config.yaml": f"""{YAML}
max_epochs: 1
hooks:
  - my_project.hooks.MyHook
""",
        }
    )
    train("--alias", "emloop", "config.yaml")
    assert seen()[0].startswith("None None")


def test_arguments_of_a_hook_in_a_module():
    write(
        {
            "my_project/hooks.py": MY_HOOK,
            "config.yaml": f"""{YAML}
max_epochs: 1
hooks:
  - my_project.hooks.MyHook:
      arg1: 10
      arg2: ['a','b']
""",
        }
    )
    train("--alias", "emloop", "config.yaml")
    # "emloop supplies the constructor with the model, the dataset and the log output directory"
    given = "{'model': 'Net', 'dataset': 'list', 'output_dir': 'str'}"
    assert sorted(seen()[0]) == sorted(f"10 ['a', 'b'] {given}")


def test_the_data_of_batches_and_epochs():
    """The three dicts that the page shows."""
    write(
        {
            "my_project/hooks.py": MY_HOOK,
            "config.yaml": f"""{YAML}
max_epochs: 1
hooks:
  - my_project.hooks.MyHook: {{name: before}}
  - ComputeStats: {{variables: [loss], dialect: emloop}}
  - my_project.hooks.MyHook
""",
        }
    )
    train("--alias", "emloop", "config.yaml", "val_data={valid: parts.stream, test: parts.stream}")
    lines = seen()
    assert lines[1] == "train ['images', 'labels', 'loss', 'prediction']"
    assert [line.split()[0] for line in lines[1:7]] == 2 * ["train"] + 2 * ["valid"] + 2 * ["test"]
    assert lines[7].startswith("epoch 0 {'train': {'loss': OrderedDict(")
    assert lines[-1].count("'mean'") == 3 and "'valid': {'loss'" in lines[-1]


def test_epoch_stopper():
    write(
        {
            "my_project/hooks.py": STOPPER,
            "config.yaml": f"""{YAML}
hooks:
  - my_project.hooks.EpochStopperHook:
      epoch_limit: 2
""",
        }
    )
    printed = train("--alias", "emloop", "config.yaml")
    assert "EpochStopperHook triggered" in printed
    assert "stopped (Training terminated after epoch 2)" in printed
    assert torch.load("run/epoch_2.pth")["progress"]["epoch"] == 2
    assert "EpochStopperHook triggered" in Path("run/run.log").read_text()


@pytest.mark.slow
def test_regular_configuration():
    write({"config.yaml": YAML + REGULAR})
    printed = train("config.yaml", "default_hooks.checkpoint=null")
    assert "stopped (100 epochs are done)" in printed
    rows = csv_rows(Path("run/metrics.csv"))
    means = [float(row["val/loss/mean"]) for row in rows]
    assert len(rows) == 100 and means[-1] < means[0]
    assert printed.count(" val/loss/mean: ") == 101
    assert printed.count("\tT read data:\t") == 101  # LogProfile.
    (events,) = Path("run").glob("events.out.tfevents*")
    points = [value for _, value in tensorboard_points(events.parent, "valid/loss")]
    assert points[1:] == pytest.approx(means, rel=1e-6)
    best = 1 + means.index(min(means))
    assert torch.load("run/model_best.pth")["progress"]["epoch"] == best


def test_regular_configuration_is_checked_planned_and_resumed():
    short = REGULAR.replace("epochs: 100", "epochs: 2")
    write({"config.yaml": YAML + short})
    assert "nothing to reject" in hookloop("check", "config.yaml").output
    planned = hookloop("plan", "config.yaml").output.partition("after_val_epoch ")[2]
    assert 0 < planned.index("compute_stats") < planned.index("save_best")
    train("config.yaml", "val_data={dev: {type: parts.stream, seed: 1}}")
    result = hookloop("resume", "run", "hooks.7.StopAfter.epochs=4")
    assert result.exit_code == 0 and "stopped (4 epochs are done)" in result.output
    train("config.yaml", "hooks.7.StopAfter.epochs=4", run="whole")
    tables = [csv_rows(Path(run, "metrics.csv")) for run in ("run", "whole")]
    resumed, whole = (
        [[row["epoch"], row["train/loss"], row[name]] for row in table]
        for table, name in zip(tables, ("val/dev/loss/mean", "val/loss/mean"), strict=True)
    )
    assert resumed == whole and len(whole) == 4


def test_every_hook_of_the_page_does_its_part_as_one_of_ours(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("logging.root.handlers", [])
    trainer = make(tmp_path / "run", "hooks.stop.epochs=12")
    outcome = trainer.train()
    run = tmp_path / "run"
    assert (outcome.status, outcome.reason) == ("stopped", "12 epochs are done")
    rows = csv_rows(run / "metrics.csv")
    means = [float(row["train/loss/mean"]) for row in rows]
    assert len(rows) == 12 and means[-1] < means[0] / 2
    points = tensorboard_points(run / "tensorboard", "val/loss/mean")
    assert [value for _, value in points] == pytest.approx(
        [float(row["val/loss/mean"]) for row in rows], rel=1e-6
    )
    assert capsys.readouterr().out.count("val/loss/mean: ") == 12
    assert "stats" in (run / "hook_times.txt").read_text(encoding="utf-8")
    best = min(rows, key=lambda row: float(row["val/loss"]))
    (file,) = run.glob("best_loss_epoch_*.pth")
    assert file.name == f"best_loss_epoch_{best['epoch']}.pth"
    assert torch.load(file, weights_only=True)["progress"]["epoch"] == int(best["epoch"])


def make(run_dir, *overrides):
    return build(load(CONFIG, [f"run_dir={run_dir}", "default_hooks.console=null", *overrides]))


def test_the_wrong_order_of_our_hooks_is_rejected(tmp_path):
    config = load(CONFIG, [f"run_dir={tmp_path / 'run'}"])
    hooks = config.tree["hooks"]
    config.tree["hooks"] = {"log": hooks["log"], "stats": hooks["stats"]}
    message = r"config.yaml:\d+: hooks.log: .*'log' reads .* before 'stats', its only writer"
    with pytest.raises(ConfigError, match=message):
        build(config).check()


def test_ctrl_c_ends_it_in_order(tmp_path):
    trainer = make(tmp_path / "run")

    @trainer.on("after_train_iter", every=30)
    def press(run):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted) as ended:
        trainer.train()
    assert ended.value.outcome.exit_code == 130
    again = make(tmp_path / "run", "resume=true", "hooks.stop.epochs=3")
    assert again.train().reason == "3 epochs are done"
    epochs = [row["epoch"] for row in csv_rows(tmp_path / "run" / "metrics.csv")]
    assert epochs == ["1", "2", "3"]
