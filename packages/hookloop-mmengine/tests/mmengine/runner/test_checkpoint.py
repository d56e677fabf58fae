"""Reading checkpoints without running code, and loading their weights."""

import contextlib
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from hookloop.errors import CheckpointError
from hookloop_mmengine.runner import (
    find_latest_checkpoint,
    get_state_dict,
    load_checkpoint,
    load_state_dict,
    save_checkpoint,
    weights_to_cpu,
)
from hookloop_mmengine.runner.checkpoint import Held, read_checkpoint, weights_in

MMENGINES = Path("tests/fixtures/mmengine_epoch_2.pth").absolute()


class Foreign:
    """A class that torch's unpickler does not know."""

    def __init__(self):
        self.value = 3


def test_a_file_that_mmengine_wrote_is_read():
    checkpoint = read_checkpoint(MMENGINES)
    assert checkpoint.keys() >= {"meta", "state_dict", "message_hub", "optimizer"}
    assert checkpoint["meta"]["epoch"] == 2


def test_unknown_classes_become_stand_ins(tmp_path):
    torch.save({"state_dict": {}, "thing": Foreign()}, tmp_path / "a.pth")
    thing = read_checkpoint(tmp_path / "a.pth")["thing"]
    assert isinstance(thing, Held)
    assert not isinstance(thing, Foreign)
    assert type(thing).__name__ == "Foreign"
    assert thing.state == {"value": 3}


def test_nothing_in_a_file_runs(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    torch.save({"state_dict": {}, "evil": Evil()}, tmp_path / "a.pth")
    with contextlib.suppress(CheckpointError):
        read_checkpoint(tmp_path / "a.pth")
    assert not (tmp_path / "ran").exists()


def test_numbers_of_numpy_are_read(tmp_path):
    torch.save({"meta": {"score": np.float64(0.5)}}, tmp_path / "a.pth")
    assert "meta" in read_checkpoint(tmp_path / "a.pth")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be loaded"),
        (b"not a checkpoint", "cannot be loaded"),
        (pickle.dumps([1, 2]), "cannot be loaded|holds a list"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, content, message):
    path = tmp_path / "broken.pth"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message) as caught:
        read_checkpoint(path)
    assert "broken.pth" in str(caught.value)


def test_other_content_and_missing_files_are_named(tmp_path):
    torch.save([1], tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="holds a list, not a checkpoint"):
        read_checkpoint(tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="There is no checkpoint '.*none.pth'"):
        read_checkpoint(tmp_path / "none.pth")


@pytest.mark.parametrize("layout", [lambda w: {"state_dict": w}, lambda w: {"model": w}, dict])
def test_weights_are_found_in_every_layout(layout):
    weights = {"a": torch.ones(1)}
    assert weights_in(layout(weights)) == weights


def test_what_is_not_a_tensor_is_not_a_weight():
    assert weights_in({"epoch": 3, "a": torch.ones(1)}).keys() == {"a"}


def test_weights_that_do_not_fit_are_reported(caplog):
    module = nn.Linear(2, 1)
    before = module.weight.detach().clone()
    load_state_dict(module, {"weight": torch.ones(3, 3), "zebra": torch.ones(1)})
    assert torch.equal(module.weight, before)
    assert "Missing weights: bias" in caplog.text
    assert "Unexpected weights: zebra" in caplog.text
    assert "Weights of another shape, not loaded: weight" in caplog.text


def test_weights_that_fit_are_not_reported(caplog):
    source, target = nn.Linear(2, 1), nn.Linear(2, 1)
    load_state_dict(target, source.state_dict())
    assert torch.equal(source.weight, target.weight)
    assert caplog.text == ""


@pytest.mark.parametrize("weights", [{"weight": torch.ones(1, 2)}, {"weight": torch.ones(3, 3)}])
def test_strict_loading_rejects_what_does_not_fit(weights):
    with pytest.raises(RuntimeError):
        load_state_dict(nn.Linear(2, 1), weights, strict=True)


def test_names_are_revised_when_they_are_loaded(tmp_path):
    source, model = nn.Linear(2, 1), nn.Linear(2, 1)
    weights = {f"module.{name}": value for name, value in source.state_dict().items()}
    save_checkpoint({"state_dict": weights, "meta": {"epoch": 1}}, str(tmp_path / "new" / "a.pth"))
    loaded = load_checkpoint(model, str(tmp_path / "new" / "a.pth"))
    assert torch.equal(model.weight, source.weight)
    assert loaded["meta"] == {"epoch": 1}
    other = nn.Linear(2, 1)
    revise = [(r"^module\.weight$", "weight"), (r"^module\.bias$", "bias")]
    load_checkpoint(other, str(tmp_path / "new" / "a.pth"), strict=True, revise_keys=revise)
    assert torch.equal(other.bias, source.bias)


def test_weights_of_a_module():
    module = nn.Linear(1, 1)
    assert set(get_state_dict(module)) == {"weight", "bias"}
    assert set(get_state_dict(module, prefix="net.")) == {"net.weight", "net.bias"}
    assert get_state_dict(module, keep_vars=True)["weight"] is module.weight
    assert weights_to_cpu(module.state_dict())["bias"].device.type == "cpu"


def test_the_latest_checkpoint_is_found(tmp_path):
    assert find_latest_checkpoint(tmp_path) is None
    (tmp_path / "epoch_1.pth").touch()
    (tmp_path / "last_checkpoint").write_text("epoch_1.pth")
    assert find_latest_checkpoint(tmp_path) == str(tmp_path / "epoch_1.pth")


def test_the_absolute_path_of_a_moved_directory_is_repaired(tmp_path):
    (tmp_path / "epoch_1.pth").touch()
    (tmp_path / "last_checkpoint").write_text("/somewhere/else/epoch_1.pth")
    assert find_latest_checkpoint(tmp_path) == str(tmp_path / "epoch_1.pth")


def test_a_path_that_leads_elsewhere_is_not_trusted(tmp_path):
    (tmp_path / "last_checkpoint").write_text("/somewhere/else/epoch_1.pth")
    with pytest.raises(CheckpointError):
        find_latest_checkpoint(tmp_path)
    found = find_latest_checkpoint(tmp_path, ["/somewhere/else"])
    assert found == "/somewhere/else/epoch_1.pth"
