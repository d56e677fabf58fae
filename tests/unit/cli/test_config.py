"""``hookloop config``: the effective config, and where its values come from."""

import json
from pathlib import Path

import pytest
import yaml
from tests import warm
from tests.unit.cli.conftest import Invoke


@pytest.fixture
def child(project: Path) -> Path:
    path = project / "child.yaml"
    path.write_text("_base_: config.yaml\noptimizer:\n  lr: ${vars.rate}\nvars: {rate: 0.5}\n")
    return path


def test_bases_overrides_and_references_are_in_place(child: Path, invoke: Invoke) -> None:
    result = invoke("config", "child.yaml", "max_epochs=7", "run_dir=here")
    assert result.exit_code == 0, result.output
    shown = yaml.safe_load(result.stdout)
    assert shown["optimizer"] == {"type": "SGD", "lr": 0.5}
    assert shown["max_epochs"] == 7 and shown["run_dir"] == "here"


def test_each_value_has_its_line(child: Path, invoke: Invoke) -> None:
    lines = invoke("config", "child.yaml", "max_epochs=7", "--sources").stdout.splitlines()
    found = dict(line.split("  # ") for line in lines)
    places = {text.partition(":")[0]: where for text, where in found.items()}
    assert places["optimizer.type"] == "config.yaml:8"
    assert places["optimizer.lr"] == "child.yaml:3"
    assert places["max_epochs"] == "command line"
    told = json.loads(invoke("config", "child.yaml", "--sources", "--json").stdout)
    assert told["sources"]["optimizer.lr"] == "child.yaml:3"
    assert told["config"]["optimizer"]["lr"] == 0.5
    assert json.loads(invoke("config", "child.yaml", "--json").stdout) == told["config"]


def test_secrets_stay_references(
    project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "very-secret-text")
    monkeypatch.setenv("PLACE", "somewhere")
    options = ["vars.token=${secret:TOKEN}", "vars.place=${env:PLACE}"]
    for more in ([], ["--json"], ["--sources"]):
        result = invoke("config", "config.yaml", *options, *more)
        assert result.exit_code == 0, result.output
        assert "very-secret-text" not in result.output and "somewhere" not in result.output
        assert "${secret:TOKEN}" in result.stdout and "${env:PLACE}" in result.stdout


@pytest.mark.slow
def test_all_problems_are_shown(project: Path) -> None:
    done = warm.run("config", "config.yaml", "optimizer.lrr=1", "modle=x")
    assert done.returncode == 2 and done.stdout == ""
    assert "Did you mean 'lr'?" in done.stderr and "Did you mean 'model'?" in done.stderr
