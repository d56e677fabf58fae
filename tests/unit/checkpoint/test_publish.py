import hashlib
import json

import pytest
import torch
from safetensors.torch import load_file
from tests.names import epoch_file

from hookloop.checkpoint.export.publish import publish, read_metadata
from hookloop.checkpoint.shards.writing import stage
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.errors import CheckpointError

ABOUT = {"epoch": 5, "metrics": {"val/loss": 0.25}, "version": "1"}


@pytest.fixture
def store(tmp_path):
    made = CheckpointStore(tmp_path)
    model = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)])
    model[1].weight = model[0].weight
    checkpoint = {
        "model": dict(model.state_dict()),
        "averaged": {"w": torch.arange(4.0).reshape(2, 2).t()},
        "progress": {"iter": 9},
    }
    made.write(checkpoint, Saved(epoch_file(5), made.location, 9, 5), 100)
    return made


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_a_file_is_named_after_its_own_hash(store, tmp_path, suffix):
    (name,) = publish(store, epoch_file(5), ["model"], [suffix], ABOUT)
    digest = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    assert name == f"epoch_5-{digest[:8]}.{suffix}"
    assert publish(store, epoch_file(5), ["model"], [suffix], ABOUT) == [name]


def test_a_single_part_is_the_state_dict_itself(store, tmp_path):
    (name,) = publish(store, epoch_file(5), ["model"], ["pth"])
    weights = torch.load(tmp_path / name, weights_only=True)
    model = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)])
    model.load_state_dict(weights)
    assert torch.equal(model[1].weight, store.load(epoch_file(5))["model"]["0.weight"])


def test_several_parts_are_a_mapping_of_them(store, tmp_path):
    plain, safe = publish(store, epoch_file(5), ["averaged", "progress"], ["pth", "safetensors"])
    loaded = torch.load(tmp_path / plain, weights_only=True)
    assert loaded["averaged"]["w"].tolist() == [[0, 2], [1, 3]]
    assert loaded["progress"] == {"iter": 9}
    tensors = load_file(tmp_path / safe)
    assert list(tensors) == ["averaged.w"]
    assert tensors["averaged.w"].tolist() == [[0, 2], [1, 3]]


def test_tied_weights_are_written_under_both_names(store, tmp_path):
    (name,) = publish(store, epoch_file(5), ["model"], ["safetensors"])
    tensors = load_file(tmp_path / name)
    assert torch.equal(tensors["0.weight"], tensors["1.weight"])
    assert len(tensors) == 4


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_metadata_is_read_again(store, tmp_path, suffix):
    (name,) = publish(store, epoch_file(5), ["model"], [suffix], ABOUT)
    assert read_metadata(tmp_path / name) == ABOUT
    (bare,) = publish(store, epoch_file(5), ["model"], [suffix])
    assert read_metadata(tmp_path / bare) == {}


def test_the_header_of_a_safetensors_file_is_aligned(store, tmp_path):
    for length in range(8):
        (name,) = publish(store, epoch_file(5), ["model"], ["safetensors"], {"x": "y" * length})
        data = (tmp_path / name).read_bytes()
        size = int.from_bytes(data[:8], "little")
        assert size % 8 == 0
        assert json.loads(data[8 : 8 + size])["__metadata__"]["format"] == "pt"


def test_a_file_without_metadata_has_none(tmp_path):
    torch.save({"w": torch.ones(1)}, tmp_path / "plain.pth")
    assert read_metadata(tmp_path / "plain.pth") == {}


def test_a_part_that_is_missing_is_rejected_with_the_nearest_name(store):
    with pytest.raises(CheckpointError, match="'avaraged'"):
        publish(store, epoch_file(5), ["model", "avaraged"], ["pth"])
    assert [name for name in store.storage.names() if "-" in name] == []


def test_a_directory_of_shards_is_published_like_a_file(store, tmp_path):
    checkpoint = store.load(epoch_file(5))
    store.write_shards(stage(checkpoint), Saved("epoch_5", store.location, 9, 5))
    formats = ["pth", "safetensors"]
    of_shards = publish(store, "epoch_5", ["model"], formats, ABOUT)
    assert of_shards[1] == publish(store, epoch_file(5), ["model"], formats, ABOUT)[1]
    weights = torch.load(tmp_path / of_shards[0], weights_only=True)
    assert all(torch.equal(weights[name], value) for name, value in checkpoint["model"].items())
