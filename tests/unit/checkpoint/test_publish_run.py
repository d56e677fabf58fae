"""The files of a published model, in a directory and on a hub."""

import json
from pathlib import Path

import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file
from tests.tiny import make_classifier

from hookloop.checkpoint.choose import choose
from hookloop.checkpoint.export.publish import read_metadata
from hookloop.checkpoint.export.publish_run import Publication, check_target, collect, write
from hookloop.errors import CheckpointError, HookloopError
from hookloop.hooks import SaveCheckpoint

CONFIG = {"model": "net.Net", "import_path": ["/somewhere"], "key": "${secret:KEY}"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    hooks = [SaveCheckpoint(best="accuracy")]
    make_classifier(hooks=hooks, run_dir=tmp_path / "run").train()
    return tmp_path / "run"


def test_a_directory_has_what_others_need(run: Path, tmp_path: Path) -> None:
    (run / "environment.json").write_text(json.dumps({"python": "3.13.1", "host": "private"}))
    chosen = choose(run)
    made = collect(run, chosen, CONFIG)
    assert write(made, tmp_path / "out") == str(tmp_path / "out")
    weights = load_file(tmp_path / "out" / "model.safetensors")
    assert all(torch.equal(weights[name], value) for name, value in chosen.weights.items())
    with safe_open(tmp_path / "out" / "model.safetensors", "pt") as file:
        assert json.loads(file.metadata()["hookloop"]) == made.about
    config = yaml.safe_load((tmp_path / "out" / "config.yaml").read_text())
    assert config == {"model": "net.Net", "key": "${secret:KEY}"}
    card = (tmp_path / "out" / "README.md").read_text()
    assert "# run" in card and "3.13.1" in card and "private" not in card


def test_torch_alone_loads_the_other_format(run: Path, tmp_path: Path) -> None:
    made = collect(run, choose(run, "last"), {}, format="pth", card=False)
    assert list(made.files) == ["model.pth"]  # A script has no config.
    write(made, tmp_path / "out")
    weights = torch.load(tmp_path / "out" / "model.pth")
    torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    ).load_state_dict(weights)
    assert read_metadata(tmp_path / "out" / "model.pth") == made.about


def test_what_strangers_wrote_does_not_stop_it(run: Path) -> None:
    (run / "environment.json").write_text("[1, 2")
    assert b"## Environment" not in collect(run, choose(run), CONFIG).files["README.md"]
    (run / "summary.json").write_text("[]")
    with pytest.raises(CheckpointError, match=r"summary of .* cannot be read"):
        collect(run, choose(run), CONFIG)


def test_files_are_replaced_only_when_that_is_said(tmp_path: Path) -> None:
    made = Publication({"README.md": b"new"}, {})
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(HookloopError, match="README.md"):
        check_target(tmp_path, made.files)
    check_target(tmp_path, made.files, overwrite=True)
    with pytest.raises(HookloopError, match="is a file"):
        check_target(tmp_path / "README.md", made.files)


@pytest.mark.parametrize("name", ["hf://model", "hf://a/b/c", "hf://a b/c", "hf://"])
def test_the_name_of_a_repository_has_two_parts(name: str) -> None:
    with pytest.raises(HookloopError, match="write hf://user/model"):
        check_target(name, {})


def test_a_hub_that_is_not_reached_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    with pytest.raises(HookloopError, match="'hf://a/b'"):
        write(Publication({"README.md": b"x"}, {}), "hf://a/b")
