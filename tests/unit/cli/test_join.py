from pathlib import Path

import torch
from click.testing import CliRunner
from safetensors.torch import load_file
from tests.names import iter_file

from hookloop.checkpoint.shards.writing import stage, write
from hookloop.cli.main import cli


def test_shards_and_files_are_joined(tmp_path: Path) -> None:
    state = {"model": {"w": torch.ones(3)}, "averaged": {"w": torch.zeros(3)}}
    write(stage({"model": state["model"]}), tmp_path / "iter_1")
    torch.save(state, tmp_path / iter_file(2))
    for name in ("iter_1", iter_file(2)):
        out = tmp_path / f"{name}.safetensors"
        done = CliRunner().invoke(cli, ["join", str(tmp_path / name), str(out)])
        assert done.exit_code == 0 and done.output == f"{out}: 1 tensors, 0.0 MB.\n"
        assert load_file(out)["w"].tolist() == [1, 1, 1]
    options = ["--part", "averaged", str(tmp_path / iter_file(2)), str(tmp_path / "a.safetensors")]
    assert CliRunner().invoke(cli, ["join", *options]).exit_code == 0
    assert load_file(tmp_path / "a.safetensors")["w"].tolist() == [0, 0, 0]


def test_a_mistake_is_reported_in_a_line(tmp_path: Path) -> None:
    gone = [str(tmp_path / "gone"), str(tmp_path / "out.safetensors")]
    done = CliRunner().invoke(cli, ["join", *gone])
    assert done.exit_code == 2
    assert done.output == f"error: There is no checkpoint '{gone[0]}'.\n"
