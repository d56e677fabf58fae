from contextlib import contextmanager

import pytest
import torch

from hookloop.data.transfer import SideStream, make_transfer


def test_on_a_cpu_there_is_nothing_to_move():
    assert make_transfer(torch.device("cpu")) is None


def test_other_devices_get_their_batches_at_once():
    move = make_transfer(torch.device("meta"))
    moved = move({"x": torch.ones(2), "n": 3})
    assert moved["x"].device.type == "meta" and moved["n"] == 3


class Encoding:
    """A batch that moves itself, as tokenizers' batches do."""

    def to(self, device):
        return ("moved to", device)


@pytest.fixture
def streams(monkeypatch):
    """Stand-ins for CUDA's streams; their calls are recorded."""
    calls = []

    class Stream:
        def __init__(self, device=None, name="side"):
            self.name = name

        def wait_stream(self, other):
            calls.append(f"{self.name} waits for {other.name}")

    @contextmanager
    def on(stream):
        calls.append(f"on {stream.name}")
        yield
        calls.append(f"off {stream.name}")

    def to(self, device, non_blocking=False, _original=torch.Tensor.to):
        calls.append(f"copy, {'pinned' if hasattr(self, 'pinned') else 'pageable'}, {non_blocking}")
        return _original(self, device)

    def pin_memory(self):
        self.pinned = True
        return self

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", on)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream(name="main"))
    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self: hasattr(self, "pinned"))
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    monkeypatch.setattr(
        torch.Tensor, "record_stream", lambda self, s: calls.append(f"kept for {s.name}")
    )
    return calls


def test_a_gpu_copies_on_a_side_stream_out_of_pinned_memory(streams):
    move = SideStream(torch.device("meta"))
    inputs, targets = move((torch.ones(2), torch.ones(1)))
    assert inputs.shape == (2,) and targets.device.type == "meta"
    copied = ["on side", "copy, pinned, True", "off side", "kept for main"]
    assert streams == [*copied, *copied, "main waits for side"]


def test_what_moves_itself_does_so_on_the_stream_of_the_computations(streams):
    device = torch.device("meta")
    assert SideStream(device)([Encoding()]) == [("moved to", device)]
    assert streams == ["main waits for side"]
