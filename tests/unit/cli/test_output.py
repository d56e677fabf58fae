import json
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from tests import warm

from hookloop.cli.main import VERBS, cli
from hookloop.cli.shared.output import (
    RESULT,
    Output,
    add_output_options,
    current_output,
    set_result,
)
from hookloop.cli.shared.report import print_error, print_text, reporting
from hookloop.errors import HookloopError


def make(function):
    return add_output_options(click.command()(reporting(function)))


def work():
    sys.stdout.write("from the user's code\n")
    print_text("a message")
    print_text("more", err=True)
    print_error("a problem")
    set_result({"loss": float("nan"), "name": "x"})
    return 1


def test_json_is_all_that_is_on_the_standard_output():
    done = CliRunner().invoke(make(work), ["--json"])
    assert json.loads(done.stdout) == {"loss": "NaN", "name": "x", "exit_code": 1}
    assert done.stderr.splitlines() == [
        "from the user's code", "a message", "more", "error: a problem",
    ]  # fmt: skip
    assert done.exit_code == 1


def test_quiet_shows_errors_only():
    done = CliRunner().invoke(make(work), ["--quiet"])
    assert (done.stdout, done.stderr) == ("", "error: a problem\n")
    both = CliRunner().invoke(make(work), ["--quiet", "--json"])
    assert json.loads(both.stdout)["name"] == "x"
    assert both.stderr == "error: a problem\n"


def test_without_options_nothing_changes():
    done = CliRunner().invoke(make(work), [])
    assert done.stdout == "from the user's code\na message\n"
    assert current_output() == Output()


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (HookloopError("no run"), 2, "no run"),
        (ValueError("shapes"), 1, "ValueError: shapes"),
        (click.UsageError("no option"), 2, "no option"),
    ],
)
def test_an_error_is_json_too(error, code, message):
    def fail():
        set_result({"run_dir": "runs/one"})
        raise error

    done = CliRunner().invoke(make(fail), ["--json"])
    assert done.exit_code == code
    found = json.loads(done.stdout)
    assert (found["error"], found["exit_code"], found["run_dir"]) == (message, code, "runs/one")
    assert message in done.stderr


def test_a_script_that_exits_is_reported_too():
    done = CliRunner().invoke(make(lambda: sys.exit(4)), ["--json"])
    assert (json.loads(done.stdout), done.exit_code) == ({"exit_code": 4}, 4)


def test_a_command_without_a_result_prints_its_exit_code():
    done = CliRunner().invoke(make(lambda: 0), ["--json"])
    assert json.loads(done.stdout) == {"exit_code": 0}


def test_the_options_are_added_once():
    @click.command()
    @reporting
    def document():
        set_result({"own": True}, as_it_is=True)
        click.echo("text")
        return 0

    command = add_output_options(add_output_options(document))
    assert len([one for one in command.params if "--json" in one.opts]) == 1
    assert json.loads(CliRunner().invoke(command, ["--json"]).stdout) == {"own": True}
    assert json.loads(CliRunner().invoke(command, ["--json", "--quiet"]).stdout) == {"own": True}
    assert CliRunner().invoke(command, ["--quiet"]).stdout == ""


BAD_CONFIG = ("find-lr", "find-batch", "try", "model", "config", "check", "plan", "train", "sweep")
BAD_RUN = ("predict", "export", "publish", "reproduce", "tag", "rm", "diff", "ask", "test")


@pytest.mark.parametrize("verb", [*BAD_CONFIG, *BAD_RUN])
def test_a_failed_command_prints_its_error_as_json(verb, tmp_path):
    more = {
        "predict": ["x"],
        "tag": ["x"],
        "diff": ["b"],
        "ask": ["save"],
        "sweep": ["a=[1,2]", "--trials", "2"],
    }
    what = "nowhere.yaml" if verb in BAD_CONFIG else "nowhere"
    command = [warm.command(), verb, what, *more.get(verb, []), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert (done.returncode, found["exit_code"]) == (2, 2) and "nowhere" in found["error"]


def test_a_command_that_was_not_understood_says_so_as_json():
    command = [warm.command(), "train", "a.yaml", "--json", "--fast"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "--fast" in json.loads(done.stdout)["error"] and "--fast" in done.stderr


@pytest.mark.parametrize("arguments", [["schema"], ["completion", "bash"], ["new", "project"]])
def test_what_is_made_is_the_result(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).stdout)
    expected = {
        "schema": lambda: found["properties"]["model"] and "exit_code" not in found,
        "completion": lambda: "_hookloop_completion" in found["script"],
        "new": lambda: "config.yaml" in found["files"] and found["directory"] == "project",
    }
    assert expected[arguments[0]]()


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_has_both_options(verb):
    command = cli.get_command(click.Context(cli), verb)
    names = [name for parameter in command.params for name in parameter.opts]
    assert (names.count("--json"), names.count("--quiet")) == (1, 1)


def test_the_first_rank_hands_its_result_to_the_launcher(tmp_path, monkeypatch, capsys):
    output = Output(as_json=True)
    with output.of_ranks(tmp_path):
        monkeypatch.setenv("RANK", "1")
        Output(as_json=True, result={"rank": 1}).finish(0)
        monkeypatch.setenv("RANK", "0")
        Output(as_json=True, result={"rank": 0}).finish(0)
    assert output.result == {"rank": 0, "exit_code": 0}
    assert RESULT not in os.environ
    assert capsys.readouterr().out == ""
    assert output.flags == ["--json"]


def test_lists_are_read_back(invoke):
    for verb in ("points", "hooks"):
        done = invoke(verb, "--json")
        assert {"name", "doc"} <= json.loads(done.stdout)[0].keys()
        assert done.stderr == ""


@pytest.mark.slow
def test_the_commands_of_a_config_are_read_back(invoke, project):
    checked = json.loads(invoke("check", "config.yaml", "--json").stdout)
    assert (checked["problems"], checked["exit_code"]) == ([], 0)
    wrong = json.loads(invoke("check", "config.yaml", "max_epoch=3", "--json").stdout)
    assert "max_epoch" in wrong["problems"][0]
    assert wrong["exit_code"] == 2
    planned = json.loads(invoke("plan", "config.yaml", "--json").stdout)
    assert {"point", "hook"} <= planned["calls"][0].keys()
    trained = invoke("train", "config.yaml", "--run-dir", "one", "--json")
    outcome = json.loads(trained.stdout)
    assert (outcome["status"], outcome["run_dir"], outcome["exit_code"]) == ("completed", "one", 0)
    assert {"val/loss", "test/loss"} <= outcome["metrics"].keys()
    assert "completed: one" in trained.stderr
    resumed = json.loads(invoke("resume", "one", "max_epochs=3", "--json").stdout)
    assert resumed["status"] == "completed"
    for verb in ("validate", "test"):
        assert json.loads(invoke(verb, "one", "--json").stdout)["metrics"]
    silent = invoke("train", "config.yaml", "--run-dir", "two", "--quiet")
    assert (silent.stdout, silent.exit_code) == ("", 0)


def test_a_failed_training_names_its_directory(invoke, project):
    broken = project / "config.yaml"
    text = broken.read_text().replace("loss: mse_loss", "loss: cli_project.fail")
    (project / "cli_project.py").write_text(MODULE)
    broken.write_text(text)
    done = invoke("train", "config.yaml", "--run-dir", "one", "--json")
    found = json.loads(done.stdout)
    assert (found["status"], found["run_dir"], found["exit_code"]) == ("failed", "one", 1)
    assert found["error"] == "ValueError: bad loss"


MODULE = """
import torch


def batches(count: int = 4, seed: int = 0):
    inputs = torch.randn(count, 8, 2)
    return [(batch, batch.sum(1, keepdim=True)) for batch in inputs]


def fail(output, target):
    raise ValueError("bad loss")
"""
