"""The smaller examples train for a moment: folds, an own loop, a plug-in, two ranks."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests import warm
from tests.documents import own_modules

from hookloop import HOOKS
from hookloop.cli.main import cli
from hookloop.testing import tiny_trainer

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def hookloop(*arguments):
    with own_modules(EXAMPLES):
        result = CliRunner().invoke(cli, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_every_fold_of_the_tabular_example_is_trained(tmp_path):
    config = EXAMPLES / "tabular" / "config.yaml"
    hookloop(
        "sweep", config, "--folds", "vars.fold=2", "vars.fold=0", "max_epochs=2", "--dir", tmp_path
    )
    (trial,) = json.loads((tmp_path / "sweep.json").read_text())["trials"]
    assert len(list(tmp_path.rglob("summary.json"))) == 2
    assert trial["value"] < 1.1


def test_the_cart_pole_learns_and_continues(tmp_path, monkeypatch, capsys):
    folder = EXAMPLES / "cart_pole"
    monkeypatch.syspath_prepend(folder)
    for updates in ("10", "20"):
        monkeypatch.setattr(
            sys, "argv", ["train", "--updates", updates, "--run-dir", str(tmp_path)]
        )
        with own_modules(EXAMPLES):
            runpy.run_path(str(folder / "train_cart_pole.py"), run_name="__main__")
    assert json.loads((tmp_path / "summary.json").read_text())["iter"] == 20
    assert "the pole stands for" in capsys.readouterr().out


def test_the_hook_of_the_plug_in_is_found_by_its_name(tmp_path, monkeypatch):
    folder = EXAMPLES / "plug_in"
    monkeypatch.syspath_prepend(folder / "src")
    point = metadata.EntryPoint("Lamp", "hookloop_lamp:Lamp", "hookloop.hooks")
    assert 'Lamp = "hookloop_lamp:Lamp"' in (folder / "pyproject.toml").read_text()
    real = metadata.entry_points
    monkeypatch.setattr(
        metadata,
        "entry_points",
        lambda **given: [point] if given == {"group": "hookloop.hooks"} else real(**given),
    )
    with own_modules(EXAMPLES):
        fresh = type(HOOKS)("hook", "hookloop.hooks")
        tiny_trainer(fresh.get("Lamp")(), run_dir=tmp_path / "run", max_epochs=1).train()
    assert (tmp_path / "run" / "lamp.txt").read_text() == "green\n"


def test_a_dialect_that_is_made_of_the_kit_alone(tmp_path):
    # A copy, because its trainings make their run directories where they are.
    folder = shutil.copytree(EXAMPLES / "dialect", tmp_path / "dialect")
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "13 passed" in done.stdout


def test_two_ranks_train_together(tmp_path):
    config = EXAMPLES / "two_ranks" / "config.yaml"
    arguments = ["train", str(config), "max_epochs=1", "--ranks", "2", "--run-dir", "run"]
    done = warm.run(*arguments, cwd=tmp_path, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["ranks"] == 2
