import zlib
from pathlib import Path

import pytest
import torch
from tests.unit.checkpoint.sharding import run_ranks, save_trained
from torch import nn

from hookloop.checkpoint.shards.manifest import encode_manifest, read_manifest
from hookloop.checkpoint.shards.reading import Shards, load_into
from hookloop.checkpoint.shards.writing import stage, write
from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.state.optimizers import optimizer_state
from hookloop.checkpoint.store.writing import WrittenFile
from hookloop.errors import CheckpointError


def test_all_of_it_or_a_part_is_read(shards) -> None:
    directory, state = shards
    assert not compare(Shards.open(directory).read_all(), state)
    assert list(Shards.open(directory).read_all("model")["model"]) == ["w", "low", "n"]
    only = Shards.open(directory).read_all("other")
    assert only["model"] == {} and only["progress"] == {"iter": 3}


def trained(width: int = 2) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(3, width), nn.Linear(width, 1))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def save(directory: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    state = {"main": optimizer_state(model, optimizer)}
    write(stage({"model": model.state_dict(), "optimizers": state}), directory)


def test_a_plain_model_is_restored(tmp_path: Path) -> None:
    model, optimizer = trained()
    save(tmp_path / "one", model, optimizer)
    other, fresh = trained()
    assert load_into(other, {"main": fresh}, tmp_path / "one") == {}
    assert not compare(other.state_dict(), model.state_dict())
    assert not compare(fresh.state_dict(), optimizer.state_dict())


def test_another_model_or_optimizer_is_rejected_with_the_name(tmp_path: Path) -> None:
    model, optimizer = trained()
    save(tmp_path / "one", model, optimizer)
    wide, of_wide = trained(4)
    with pytest.raises(CheckpointError, match=r"'model.0.weight'.*\(2, 3\).*\(4, 3\)"):
        load_into(wide, {"main": of_wide}, tmp_path / "one")
    more = nn.Sequential(*model, nn.Linear(1, 1))
    with pytest.raises(CheckpointError, match="'model.2.weight'"):
        load_into(more, {"main": torch.optim.Adam(more.parameters())}, tmp_path / "one")
    with pytest.raises(CheckpointError, match="'1.bias'"):
        load_into(model[:1], {}, tmp_path / "one")
    with pytest.raises(CheckpointError, match="'mian'.*'main'"):
        load_into(model, {"mian": optimizer}, tmp_path / "one")


def test_what_a_module_keeps_besides_tensors_is_restored(tmp_path: Path) -> None:
    class Counting(nn.Linear):
        count = 0

        def get_extra_state(self) -> int:
            return self.count

        def set_extra_state(self, state: int) -> None:
            self.count = state

    model = Counting(1, 1)
    model.count = 5
    save(tmp_path / "one", model, torch.optim.SGD(model.parameters()))
    other = Counting(1, 1)
    load_into(other, {"main": torch.optim.SGD(other.parameters())}, tmp_path / "one")
    assert other.count == 5 and torch.equal(other.weight, model.weight)


def test_a_state_that_does_not_fit_the_shards_is_rejected(shards) -> None:
    directory, _ = shards
    manifest = read_manifest(directory)
    paths = {"model.w": ["model", "w"]}
    torch.save({"state": {"model": {}}, "paths": paths}, directory / "state.pt")
    data = (directory / "state.pt").read_bytes()
    files = {**manifest.files, "state.pt": WrittenFile(len(data), zlib.crc32(data))}
    (directory / "manifest.json").write_bytes(encode_manifest(files, {}))
    with pytest.raises(CheckpointError, match="is in only one of its two lists of tensors"):
        Shards.open(directory)


@pytest.mark.slow
def test_damage_that_one_rank_finds_is_an_error_on_all(tmp_path: Path) -> None:
    directory = save_trained(tmp_path, 2)
    path = directory / "__1_0.distcp"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)
    outputs = run_ranks(
        tmp_path,
        3,
        """
        from hookloop.checkpoint.shards.reading import load_into
        from hookloop.errors import CheckpointError

        model, optimizer = build()
        before = {n: full(v).clone() for n, v in model.state_dict().items()}
        try:
            load_into(model, {"main": optimizer}, home / "iter_3", group)
        except CheckpointError as error:
            print(error)
        assert all(torch.equal(full(v), before[n]) for n, v in model.state_dict().items())
        wide, of_wide = build(width=6)
        try:
            load_into(wide, {"main": of_wide}, home / "iter_3", group)
        except CheckpointError as error:
            assert "__1_0" in str(error)
        """,
    )
    assert all("__1_0.distcp' is damaged: its checksum is wrong" in output for output in outputs)
