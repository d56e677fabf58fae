"""Secrets and values from the environment: used by the code, found in nothing that a run leaves."""

import io
import logging
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from tests.names import epoch_file

from hookloop.cli.main import cli
from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.errors import ConfigError

TOKEN, PASSWORD, HOST = "s3cr3t-token-31", "pa55word-in-a-file", "host-of-the-environment"

PROJECT = """
import logging

import torch
from torch import nn

from hookloop import Hook
from hookloop.writers.records import Text


class Net(nn.Linear):
    def __init__(self, width: int = 2):
        super().__init__(width, 2)


def data(token: str = ""):
    assert token in ("", "s3cr3t-token-31"), "the clear text reaches the code"
    inputs = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
    labels = (inputs[:, 0] > 0).long()
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(inputs, labels), batch_size=4
    )


class Send(Hook):
    seen = []

    def __init__(self, url: str, header: dict | None = None, fails: bool = False) -> None:
        self.url, self.header, self.fails = url, header, fails

    def state_dict(self):
        return {"url": self.url, "text": f"to {self.url}"}

    def load_state_dict(self, state):
        self.restored = state

    def after_train_iter(self, run):
        Send.seen.append((str(self.url), dict(self.header or {})))
        logging.getLogger("hookloop").warning("sending to %s", self.url)
        run.emit(Text("sent", f"with {self.header}"))
        if self.fails:
            raise RuntimeError(f"401 from {self.url}")
"""

CONFIG = """\
model: {type: secret_project.Net, width: "${env:TEST_WIDTH}"}
train_data: {type: secret_project.data, token: "${vars.token}"}
loss: CrossEntropyLoss
optimizer: {type: SGD, lr: "${env:TEST_LR,0.1}"}
max_epochs: 1
seed: 0
vars:
  token: ${secret:TEST_TOKEN}
  host: ${env:TEST_HOST}
  both: {list: [1, "${vars.host}", "${vars.token}"]}
default_hooks: {metrics: {type: WriteMetrics, every: 1}}
hooks:
  - type: secret_project.Send
    url: https://me:${secret:file:%s}@${vars.host}/x
    header: {Authorization: "Bearer ${vars.token}", copy: "${vars.both}"}
  - {type: LogMetrics, every: 1}
  - DumpOnException
  - {type: SnapshotSource, root: .}
  - {type: WriteTensorBoard, every: 1}
  - {type: WriteWandb, mode: offline}
  - {type: WriteMLflow}
  - {type: WriteTrackio, project: secrets}
"""

Project = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "secret_project.py").write_text(PROJECT)
    (tmp_path / "code.py").write_text(f"copied = {TOKEN!r}\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key.txt").write_text(f"{PASSWORD}\n")
    (tmp_path / "a.yaml").write_text(CONFIG % (tmp_path / "outside" / "key.txt"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEST_TOKEN", TOKEN)
    monkeypatch.setenv("TEST_HOST", HOST)
    monkeypatch.setenv("TEST_WIDTH", "2")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "run" / "trackio"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, archives with what is in them."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if zipfile.is_zipfile(io.BytesIO(data)):
                archive = zipfile.ZipFile(io.BytesIO(data))
                data = b"".join(archive.read(name) for name in archive.namelist())
            found[str(path.relative_to(directory))] = data
    return found


def leaks(directory: Path, *values: str) -> list[str]:
    return [
        name
        for name, data in contents(directory).items()
        if any(value.encode() in data for value in values)
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_nothing_that_a_run_leaves_holds_a_secret(project: Path) -> None:
    trainer = build(load("a.yaml"), run_dir="run")
    trainer.train()
    from secret_project import Send  # type: ignore[import-not-found]

    url, header = Send.seen[-1]
    assert url == f"https://me:{PASSWORD}@{HOST}/x"
    assert header["Authorization"] == f"Bearer {TOKEN}"
    assert header["copy"] == {"list": [1, HOST, TOKEN]}
    names = contents(project / "run")
    assert any("wandb" in name for name in names)
    assert any("tfevents" in name for name in names)
    assert not leaks(project / "run", TOKEN, PASSWORD)


@pytest.mark.filterwarnings("ignore")
def test_references_are_what_is_written(project: Path) -> None:
    build(load("a.yaml", ["hooks=[]"]), run_dir="run").train()
    written = yaml.safe_load((project / "run" / "config.yaml").read_text())
    assert written["vars"] == {
        "token": "${secret:TEST_TOKEN}",
        "host": "${env:TEST_HOST}",
        "both": {"list": [1, "${env:TEST_HOST}", "${secret:TEST_TOKEN}"]},
    }
    assert written["model"]["width"] == "${env:TEST_WIDTH}"
    assert written["optimizer"]["lr"] == "${env:TEST_LR,0.1}"
    checkpoint = torch.load(project / "run" / epoch_file(1), weights_only=True)
    assert checkpoint["config"] == written
    assert not leaks(project / "run", HOST, TOKEN)


@pytest.mark.parametrize("show", [[], ["--traceback"]])
def test_a_failure_is_shown_without_it(
    project: Path, show: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    hooks = [
        "hooks.4=null", "hooks.5=null", "hooks.6=null", "hooks.7=null", "hooks.0.fails=true",
    ]  # fmt: skip
    with pytest.raises(SystemExit) as end:
        cli.main(["train", "a.yaml", "--run-dir", "run", *show, *hooks], standalone_mode=False)
    assert end.value.code == 1
    shown = "".join(capfd.readouterr())
    assert f"401 from https://me:${{secret:file:{project}/outside/key.txt}}@" in shown
    assert PASSWORD not in shown
    assert TOKEN not in shown
    assert (project / "run" / "exception_iter_1.txt").is_file()
    assert not leaks(project / "run", TOKEN, PASSWORD)


def test_a_value_of_the_wrong_type_is_shown_without_it(project: Path) -> None:
    with pytest.raises(ConfigError) as shown:
        build(load("a.yaml", ["model.width=${secret:TEST_TOKEN}", "hooks=[]"]))
    assert "model.width: expected int, got '${secret:TEST_TOKEN}'" in str(shown.value)


@pytest.mark.parametrize("key", ["name", "run_dir", "model.type", "import_path"])
def test_a_secret_names_no_file_and_no_class(project: Path, key: str) -> None:
    with pytest.raises(ConfigError, match="a secret cannot be used here") as shown:
        build(load("a.yaml", ["hooks=[]", f"{key}=x${{secret:TEST_TOKEN}}"]))
    assert TOKEN not in str(shown.value)


@pytest.mark.parametrize("verb", ["check", "plan"])
def test_looking_at_a_config_shows_none(
    project: Path, verb: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([verb, "a.yaml", "hooks.5=null"], standalone_mode=False)
    assert end.value.code == 0
    shown = "".join(capfd.readouterr())
    assert TOKEN not in shown
    assert PASSWORD not in shown


def test_a_resume_reads_the_environment_again(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = load("a.yaml", ["hooks=[]", "train_data.token=''", "accumulate=${env:TEST_PARTS}"])
    assert "TEST_PARTS" in str(config.problems)
    monkeypatch.setenv("TEST_PARTS", "1")
    monkeypatch.setenv("TEST_TOKEN", "first-token")
    config = load("a.yaml", ["hooks=[]", "train_data.token=''", "accumulate=${env:TEST_PARTS}"])
    build(config, run_dir="run").train()

    monkeypatch.setenv("TEST_HOST", "another-host")
    monkeypatch.setenv("TEST_TOKEN", "second-token")
    again = load("run", ["max_epochs=2"])
    assert again.tree["vars"]["token"] == "second-token"  # type: ignore[index]
    with caplog.at_level(logging.WARNING, "hookloop"):
        build(again, run_dir="run", resume=True).train()
    assert "environment" not in caplog.text  # A name or a path may differ, a secret must not.

    monkeypatch.setenv("TEST_PARTS", "2")
    with caplog.at_level(logging.WARNING, "hookloop"):
        build(load("run", ["max_epochs=3"]), run_dir="run", resume=True).train()
    assert "Resumed with other numbers from the environment: accumulate" in caplog.text

    monkeypatch.delenv("TEST_HOST")
    with pytest.raises(ConfigError, match=r"config.yaml:\d+: vars.host: .*'TEST_HOST' is not set"):
        build(load("run"), run_dir="run", resume=True)


def test_a_python_config_has_them_as_well(project: Path) -> None:
    (project / "b.py").write_text(
        "from secret_project import Net\n"
        "model = dict(type=Net)\n"
        "vars = dict(a=('${secret:TEST_TOKEN}', 'at ${env:TEST_HOST}'))\n"
    )
    config = load("b.py")
    assert config.tree["vars"] == {"a": [TOKEN, f"at {HOST}"]}
    from hookloop.config.dump import effective

    assert effective(config)["vars"] == {"a": ["${secret:TEST_TOKEN}", "at ${env:TEST_HOST}"]}


@pytest.mark.slow
def test_the_processes_of_a_proof_show_none(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hooks = ["hooks.4=null", "hooks.5=null", "hooks.6=null", "hooks.7=null", "hooks.0.fails=true"]
    with pytest.raises(SystemExit) as end:
        cli.main(["verify-resume", "a.yaml", "--iters", "2", *hooks], standalone_mode=False)
    assert end.value.code == 2
    shown = "".join(capfd.readouterr())
    assert "401 from https://me:${secret:file:" in shown
    assert PASSWORD not in shown
