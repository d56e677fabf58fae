from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml

from hookloop.config.build import arguments, build
from hookloop.config.dump import dump, effective
from hookloop.config.load import load
from hookloop.config.tree import Config
from hookloop.errors import ConfigError

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


OBJECTS = """
import functools
import torch
from torch import nn
from torch.utils.data import DataLoader
from hookloop.hooks import LogMemory, StopOnPlateau
from proj import Pairs, batches

model = nn.Linear(2, 1)
train_data = DataLoader(Pairs(), batch_size=2)
val_data = dict(clean=batches(2), dirty=batches(1))
loss = functools.partial(nn.functional.smooth_l1_loss, beta=0.5)
metrics = dict(mae=lambda output, targets: (output - targets).abs().mean())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
hooks = [StopOnPlateau("val/clean/loss", patience=9), "LogMemory"]
default_hooks = dict(console=None)
device = torch.device("cpu")
max_epochs = 1
"""


def test_objects_are_written_as_where_they_are_found_again(write: Write, project: Path) -> None:
    config = write(OBJECTS, name="object_config.py")
    written = effective(config, project)
    assert written["model"] == {"ref": "object_config:model"}
    assert written["val_data"]["clean"] == {"ref": "object_config:val_data.clean"}
    assert written["metrics"] == {"mae": {"ref": "object_config:metrics.mae"}}
    assert written["hooks"] == [{"ref": "object_config:hooks.0"}, "LogMemory"]
    assert written["device"] == {"ref": "object_config:device"}


def test_a_run_of_objects_is_built_again_from_what_it_wrote(write: Write, project: Path) -> None:
    config = write(OBJECTS, "hooks.LogMemory=null", name="object_config_2.py")
    first = build(config, run_dir="run")
    first.train()
    again = load("run")
    assert [type(hook).__name__ for hook in arguments(again)["hooks"]] == ["StopOnPlateau"]
    second = build(again, resume="run")
    assert second.train(max_epochs=2).status == "completed"
    assert second.run.progress.epoch == 2
    # What it wrote in turn names the same objects.
    assert load("run").tree["model"] == {"ref": "object_config_2:model"}


def test_a_file_that_cannot_be_imported_may_hold_no_objects(write: Write) -> None:
    with pytest.raises(ConfigError, match="model: a resume could not find this Linear again"):
        arguments(write(OBJECTS, name="object-config.py"))


def test_an_object_that_has_no_place_is_rejected(write: Write) -> None:
    config = write("model: proj.Net\nvars: {odd: !!set {a, b}}\n")
    with pytest.raises(ConfigError, match="a.yaml:2.*vars.odd"):
        effective(config)


def test_what_null_took_away_is_not_written(write: Write) -> None:
    config = write(
        "model: proj.Net\nhooks: {mem: {type: LogMemory}, stop: {type: StopAfter, epochs: 3}}\n"
        "metrics: {mae: proj.difference}\ndefault_hooks: {console: null}\n",
        "hooks.mem=null",
        "metrics.mae=null",
    )
    written = effective(config)
    assert written["hooks"] == {"stop": {"type": "StopAfter", "epochs": 3}}
    assert written["metrics"] == {}
    assert written["default_hooks"] == {"console": None}
    arguments(config)


def test_null_from_a_reference_or_a_child_removes(write: Write, project: Path) -> None:
    (project / "base.yaml").write_text(
        "model: proj.Net\nvars: {extra: null}\n"
        "hooks: {mem: {type: LogMemory}, cache: {type: EmptyCache}}\n"
    )
    config = write("_base_: base.yaml\nhooks: {mem: null, extra: '${vars.extra}'}\n")
    assert [hook.name for hook in arguments(config)["hooks"]] == ["cache"]
