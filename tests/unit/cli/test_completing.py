"""What is offered when TAB is pressed."""

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

import hookloop.hooks
from hookloop.cli.look.completing import DEFAULT_HOOKS
from hookloop.cli.main import cli
from hookloop.trainer.default_hooks import KNOWN_HOOKS


def offered(*words: str) -> list[str]:
    *before, begun = words
    made = ShellComplete(cli, {}, "hookloop", "_HOOKLOOP_COMPLETE")
    return [item.value for item in made.get_completions(before, begun)]


@pytest.fixture(autouse=True)
def _hooks(project: Path) -> None:
    (project / "base.yaml").write_text("_base_: config.yaml\nhooks: {stop: {type: StopAfter}}\n")
    (project / "list.yaml").write_text("hooks: [{StopAfter: {epochs: 3}}, {type: CutMix}]\n")


def test_verbs_and_options() -> None:
    assert offered("expo") == ["export"] and "train" in offered("")
    assert offered("export", "--for") == ["--format"]
    assert offered("export", "--format", "to") == ["torch.export", "torchscript"]


def test_keys_of_the_config() -> None:
    assert offered("train", "config.yaml", "optimizer.l") == ["optimizer.lr="]
    assert offered("train", "config.yaml", "max_e") == ["max_epochs="]
    assert offered("train", "config.yaml", "mod") == ["model."]
    assert offered("train", "config.yaml", "model.in") == ["model.in_features="]
    assert offered("train", "config.yaml", "seed=1", "data.epoch_") == ["data.epoch_iters="]


def test_hooks_and_their_parameters() -> None:
    assert "hooks.AverageWeights." in offered("train", "config.yaml", "hooks.")
    stop = offered("train", "base.yaml", "hooks.stop.")
    assert {"hooks.stop.epochs=", "hooks.stop.minutes=", "hooks.stop.priority="} <= set(stop)
    assert offered("train", "list.yaml", "hooks.") == ["hooks.StopAfter.", "hooks.CutMix."]
    assert "hooks.StopAfter.minutes=" in offered("train", "list.yaml", "hooks.StopAfter.")
    assert "hooks.CutMix.alpha=" in offered("train", "list.yaml", "hooks.CutMix.")
    best = offered("train", "config.yaml", "default_hooks.checkpoint.be")
    assert best == ["default_hooks.checkpoint.begin=", "default_hooks.checkpoint.best="]
    assert offered("hooks", "StopOnN") == ["StopOnNaN"]


def test_values_of_settings_that_have_few() -> None:
    assert offered("train", "config.yaml", "precision=b") == ["precision=bf16"]
    assert offered("train", "config.yaml", "precision", "=", "b") == ["bf16"]  # As bash splits it.
    assert offered("train", "config.yaml", "setup.deterministic=") == [
        "setup.deterministic=true", "setup.deterministic=false", "setup.deterministic=warn",
    ]  # fmt: skip
    assert offered("train", "config.yaml", "optimizer.lr=") == []


def test_runs_the_newest_first(project: Path) -> None:
    for name in ("a", "b", "other"):
        (project / "runs" / name).mkdir(parents=True)
    for name in ("a", "b"):
        (project / "runs" / name / "summary.json").write_text("{}")
    assert offered("export", "ru") == ["runs/b", "runs/a"]
    assert offered("resume", "runs/a") == ["runs/a"]
    assert offered("publish", "els") == ["els"]  # The shell completes directories.


@pytest.mark.parametrize("text", ["a: [", "_base_: gone.yaml", "\x00"])
def test_a_file_that_cannot_be_read_offers_the_keys(project: Path, text: str) -> None:
    (project / "bad.yaml").write_text(text)
    assert offered("train", "bad.yaml", "max_e") == ["max_epochs="]
    assert offered("train", "gone.yaml", "max_e") == ["max_epochs="]


def test_no_python_config_is_run_and_no_secret_is_read(project: Path) -> None:
    (project / "config.py").write_text("raise SystemExit('it was run')")
    assert offered("train", "config.py", "max_e") == ["max_epochs="]
    (project / "secret.yaml").write_text("vars: {x: '${secret:GONE}'}")
    assert offered("train", "secret.yaml", "vars.") == ["vars.x="]


def test_the_table_of_default_hooks_is_that_of_the_trainer() -> None:
    assert {name: hook.__name__ for name, hook in KNOWN_HOOKS.items()} == DEFAULT_HOOKS
    assert set(DEFAULT_HOOKS.values()) <= set(hookloop.hooks.__all__)
