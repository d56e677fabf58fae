from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml

from hookloop.config.build import arguments
from hookloop.config.dump import dump, effective
from hookloop.config.load import load
from hookloop.config.tree import Config

Write = Callable[..., Config]


def test_the_effective_config_is_plain_yaml_after_all_is_resolved(
    write: Write, project: Path
) -> None:
    (project / "base.yaml").write_text("max_epochs: 2\nvars: {lr: 1e-3}\n")
    config = write(
        "_base_: base.yaml\nmodel: proj.Net\nrun_dir: x\n"
        "optimizer: {type: SGD, lr: '${vars.lr}'}\n",
        "max_epochs=5",
    )
    assert yaml.safe_load(dump(config, "x")) == {
        "max_epochs": 5,
        "vars": {"lr": 0.001},
        "model": "proj.Net",
        "optimizer": {"type": "SGD", "lr": 0.001},
        "import_path": [".."],
    }


def test_classes_and_functions_are_written_as_their_path(write: Write) -> None:
    config = write(
        "from proj import Net, difference\n"
        "model = dict(type=Net)\n"
        "def loss(output, targets):\n"
        "    return difference(output, targets)\n",
        name="dumped_paths.py",
    )
    written = effective(config)
    assert written["model"] == {"type": "proj.Net"}
    assert written["loss"] == "dumped_paths.loss"


def test_a_written_config_reads_back_the_same(write: Write, project: Path) -> None:
    config = write("model: proj.Net\nname: costs $${price}\nvars: {text: '1e-3', big: 1e30}\n")
    (project / "copy.yaml").write_text(dump(config, project))
    again = load("copy.yaml").tree
    assert again.pop("import_path") == ["."]
    assert again == config.tree
    assert again["name"] == "costs ${price}"


def test_a_written_config_builds_again_from_another_directory(
    write: Write,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    (project / "configs").mkdir()
    (project / "configs" / "nearby.py").write_text("from proj import Net\n")
    config = write("model: nearby.Net\nseed: 3\n", name="configs/a.yaml")
    run = project / "runs" / "one"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text(dump(config, "runs/one"))
    assert yaml.safe_load((run / "config.yaml").read_text())["import_path"] == [
        "../../configs",
        "../..",
    ]
    first = arguments(config)["model"]

    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    second = arguments(load(run))["model"]
    assert torch.equal(first.head.weight, second.head.weight)


def test_a_run_outside_the_project_names_it_absolutely(write: Write, project: Path) -> None:
    config = write("model: proj.Net\n")
    assert effective(config, "/somewhere/else")["import_path"] == [str(project)]


def test_a_project_outside_the_working_directory_is_named_absolutely(
    write: Write, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("model: proj.Net\n")
    here = project.parent / f"{project.name}_beside"
    here.mkdir()
    monkeypatch.chdir(here)
    written = effective(load(project / "a.yaml"), "runs/one")
    assert written["import_path"] == [str(project), "../.."]
