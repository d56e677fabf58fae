"""A run stays one run of a tracker, and no curve goes back, however the run was stopped."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests import readback, warm
from tests.names import iter_file
from tests.tiny import make_classifier

from hookloop import Hook
from hookloop.hooks import (
    SaveCheckpoint,
    WriteMLflow,
    WriteTensorBoard,
    WriteTrackio,
    WriteWandb,
)

pytestmark = pytest.mark.slow  # It starts services and databases.

NAMES = ("train/loss", "train_epoch/loss", "val/loss", "val/accuracy", "quality", "lr")
ROOT = Path(__file__).parents[3]


def hooks(every=2):
    return {
        "wandb": WriteWandb("p", every=every, mode="offline"),
        "mlflow": WriteMLflow(every=every),
        "trackio": WriteTrackio("p", every=every),
        "board": WriteTensorBoard(every=every),
        "quality": Quality(),
    }


class Quality(Hook):
    priority = 100

    def after_epoch(self, run):
        run.metrics.put("quality", run.progress.iter)


class Kill(Hook):
    """Kills the process after an iteration."""

    priority = 100

    def __init__(self, iteration):
        self.iteration = iteration

    def after_train_iter(self, run):
        if run.progress.iter == self.iteration:
            os.kill(os.getpid(), signal.SIGKILL)


def train(directory, kill=None, **options):
    parts = hooks() | {"save": SaveCheckpoint(every="3 iters")}
    if kill is not None:
        parts["kill"] = Kill(kill)
    options = {"max_epochs": 4, "val_every": 2, "setup": {"config": {"seed": 1}}} | options
    trainer = make_classifier(hooks=parts, run_dir=directory, **options)
    trainer.train()
    return trainer


def train_and_be_killed(directory, kill, resume):
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path\n"
        "from tests.unit.hooks.test_write_to_tracker import train\n"
        f"train(Path({str(directory)!r}), {kill}, resume={resume!r})\n"
    )
    # The other process must not use a wandb service that this one has started: it would not end.
    environment = {n: v for n, v in os.environ.items() if n != "WANDB_SERVICE"}
    done = subprocess.run([warm.python(), "-c", script], check=False, timeout=300, env=environment)
    assert done.returncode == -signal.SIGKILL


def points(directory):
    """Return what each tracker holds of each name, in the order of writing."""
    known = json.loads((directory / "trackers.json").read_text(encoding="utf-8"))
    run_id = known["mlflow"]["run"]
    (experiment,) = (directory / "mlruns").glob("[1-9]*")
    assert sorted(path.name for path in experiment.iterdir() if path.is_dir()) == [run_id]
    logs = directory.glob("wandb/*/run-*.wandb")
    assert {path.name for path in logs} == {f"run-{known['wandb']['run']}.wandb"}
    return {
        name: {
            "wandb": readback.wandb_points(directory, name),
            "mlflow": readback.mlflow_points(directory / "mlruns", run_id, name),
            "trackio": readback.trackio_points("p", known["trackio"]["run"], name),
            "board": [
                (step, pytest.approx(value, rel=1e-6))
                for step, value in readback.tensorboard_points(directory / "tensorboard", name)
            ],
        }
        for name in NAMES
    }


@pytest.fixture(autouse=True)
def own_trackio(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))


def assert_same(parts, whole):
    for name in NAMES:
        for tracker, found in parts[name].items():
            assert found == whole[name]["mlflow"], (name, tracker)
            steps = [step for step, _ in found]
            assert steps == sorted(set(steps)), (name, tracker)


@pytest.mark.slow
def test_numbers_after_the_checkpoint_are_sent_once(tmp_path):
    train(tmp_path / "whole", resume=None)
    train(tmp_path / "parts", max_iters=8)
    train(tmp_path / "parts", resume=tmp_path / "parts" / iter_file(6)).test()
    parts = points(tmp_path / "parts")
    # The first part ended and wrote the rest of its interval, where the whole run continued.
    assert_same(parts, points(tmp_path / "whole"))
    known = json.loads((tmp_path / "parts" / "trackers.json").read_text(encoding="utf-8"))
    rows = readback.wandb_history(tmp_path / "parts")
    counts = [row["_step"] for row in rows]
    assert counts == sorted(set(counts))  # Otherwise a service would drop rows of the later parts.
    assert len(list((tmp_path / "parts").glob(f"wandb/*-{known['wandb']['run']}*"))) == 3


@pytest.mark.slow
def test_a_killed_and_resumed_run_has_the_curves_of_a_whole_one(tmp_path):
    train(tmp_path / "whole")
    train_and_be_killed(tmp_path / "parts", 2, None)  # Before its first checkpoint.
    train_and_be_killed(tmp_path / "parts", 8, "auto")
    train(tmp_path / "parts", resume="auto").test()
    assert_same(points(tmp_path / "parts"), points(tmp_path / "whole"))


def test_a_run_from_a_checkpoint_of_another_directory_is_a_new_run(tmp_path):
    train(tmp_path / "one", max_epochs=1)
    train(tmp_path / "two", max_epochs=2, resume=tmp_path / "one" / iter_file(3))
    ids = [
        json.loads((tmp_path / name / "trackers.json").read_text(encoding="utf-8"))
        for name in ("one", "two")
    ]
    for tracker in ("wandb", "mlflow", "trackio"):
        assert ids[0][tracker]["run"] != ids[1][tracker]["run"]


def test_a_damaged_trackers_file_starts_a_new_run(tmp_path):
    tmp_path.joinpath("trackers.json").write_text('{"mlflow": 3', encoding="utf-8")
    hook = WriteMLflow()
    make_classifier(hooks={"mlflow": hook}, run_dir=tmp_path).train()
    assert json.loads((tmp_path / "trackers.json").read_text())["mlflow"]["run"] == hook.run_id


def test_another_experiment_gets_a_new_run(tmp_path):
    def train_in(experiment, **options):
        hook = WriteMLflow(experiment=experiment)
        parts = {"mlflow": hook, "save": SaveCheckpoint()}
        make_classifier(hooks=parts, run_dir=tmp_path, **options).train()
        return hook.run_id

    assert train_in("a") != train_in("b", resume=True, max_epochs=2)
