"""Checkpoints, wherever their path leads."""

import http.server
import threading

import pytest
import torch

from hookloop_mmengine.runner import CheckpointLoader
from hookloop_mmengine.runner.checkpoint import (
    _load_checkpoint,
    _load_checkpoint_to_model,
    _load_checkpoint_with_prefix,
    load_checkpoint,
)


@pytest.fixture
def path(tmp_path):
    weights = {"backbone.weight": torch.ones(2, 1), "backbone.bias": torch.zeros(2)}
    torch.save({"state_dict": weights, "meta": {"epoch": 3}}, tmp_path / "a.pth")
    return str(tmp_path / "a.pth")


def test_a_file_of_the_disk(path, capfd):
    assert _load_checkpoint(path)["meta"] == {"epoch": 3}
    assert f"Loads checkpoint by local backend from path: {path}" in capfd.readouterr().out
    with pytest.raises(FileNotFoundError, match="b.pth can not be found"):
        CheckpointLoader.load_checkpoint("b.pth")


def test_the_part_with_a_prefix(path):
    found = _load_checkpoint_with_prefix("backbone", path)
    assert set(found) == {"weight", "bias"}
    with pytest.raises(AssertionError, match="head. is not in the pretrained model"):
        _load_checkpoint_with_prefix("head", path)


def test_a_checkpoint_is_loaded_into_a_model(path):
    model = torch.nn.ModuleDict({"backbone": torch.nn.Linear(1, 2)})
    checkpoint = {"state_dict": {"module.backbone.weight": torch.full((2, 1), 5.0)}}
    assert _load_checkpoint_to_model(model, checkpoint) is checkpoint
    assert model["backbone"].weight.eq(5).all()
    load_checkpoint(model, path)
    assert model["backbone"].weight.eq(1).all()


def test_a_project_registers_a_prefix(path):
    @CheckpointLoader.register_scheme("toy://")
    def load_from_toy(filename, map_location=None):
        return {"state_dict": {}, "from": filename}

    try:
        assert CheckpointLoader.load_checkpoint("toy://x")["from"] == "toy://x"
        with pytest.raises(KeyError, match="toy:// is already registered"):
            CheckpointLoader.register_scheme(["toy://"], load_from_toy)
        CheckpointLoader.register_scheme("toy://", load_from_toy, force=True)
    finally:
        del CheckpointLoader._schemes["toy://"]


@pytest.mark.parametrize(
    "name", ["torchvision://resnet50", "open-mmlab://a", "s3://a/b.pth", "cluster:s3://a/b.pth"]
)
def test_lists_of_models_are_not_offered(name):
    with pytest.raises(ValueError, match="Give the URL of the file instead.*--graft mmengine"):
        CheckpointLoader.load_checkpoint(name)


def test_a_url_is_fetched_once(path, tmp_path, monkeypatch):
    asked = []

    class Files(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            content = (tmp_path / "a.pth").read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args): ...

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    with http.server.HTTPServer(("127.0.0.1", 0), Files) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/models/a.pth"
            for _ in range(2):
                assert _load_checkpoint(url)["meta"] == {"epoch": 3}
        finally:
            server.shutdown()
            thread.join()
    assert asked == ["/models/a.pth"]
