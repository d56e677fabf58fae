from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from hookloop.checkpoint.shards.merge import TYPES, join
from hookloop.checkpoint.shards.writing import stage, write
from hookloop.checkpoint.state.compare import compare
from hookloop.errors import CheckpointError


def test_shards_become_one_file(shards, tmp_path: Path) -> None:
    directory, state = shards
    out = tmp_path / "out.safetensors"
    assert join(directory, out) == 3
    assert not compare(load_file(out), state["model"])
    with pytest.raises(CheckpointError, match="exists already"):
        join(directory, out)


def test_every_type_comes_back(tmp_path: Path) -> None:
    weights = {
        str(dtype): torch.ones(3, dtype=torch.float32).to(dtype)
        for dtype in TYPES
        if dtype is not torch.complex64
    }
    weights |= {"none": torch.ones(0, 4), "tied": weights["torch.float32"]}
    write(stage({"model": weights}), tmp_path / "one")
    torch.save({"model": weights}, tmp_path / "one.pth")
    torch.save(weights, tmp_path / "plain.pth")
    for name in ("one", "one.pth", "plain.pth"):
        join(tmp_path / name, tmp_path / f"{name}.safetensors")
        assert not compare(load_file(tmp_path / f"{name}.safetensors"), weights)


def test_a_part_that_is_missing_and_other_names_are_rejected(shards, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="'modle'.*'model'"):
        join(shards[0], tmp_path / "out.safetensors", "modle")
    with pytest.raises(CheckpointError, match="'.safetensors'"):
        join(shards[0], tmp_path / "out.pth")
    with pytest.raises(CheckpointError, match="There is no checkpoint"):
        join(tmp_path / "gone", tmp_path / "out.safetensors")
    assert not list(tmp_path.glob("out*"))


def test_damage_is_found_before_anything_is_written(shards, tmp_path: Path) -> None:
    path = shards[0] / "__0_0.distcp"
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(CheckpointError, match="is damaged"):
        join(shards[0], tmp_path / "out.safetensors")
    assert not list(tmp_path.glob("*out*"))
