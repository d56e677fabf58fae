"""Files that other programs load, with metadata inside."""

import resource
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tiny import make_model

from hookloop.checkpoint.export.export import (
    SUFFIXES,
    Example,
    at_least_two,
    format_named,
    read_metadata,
    write_model,
)
from hookloop.errors import HookloopError, ModelError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
ABOUT = {"hookloop": "1", "metrics": {"val/loss": 0.5}}


class Named(torch.nn.Linear):
    """Takes its inputs by name, and returns a mapping."""

    def forward(self, x, scale=None):
        output = super().forward(x)
        return {"output": output if scale is None else output * scale}


@pytest.mark.slow
@pytest.mark.parametrize("format", SUFFIXES)
def test_every_format_holds_the_metadata(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"model{SUFFIXES[format]}"
    takes_any = write_model(make_model().eval(), path, format, Example.of(torch.randn(3, 4)), ABOUT)
    assert read_metadata(path, format) == ABOUT
    assert takes_any is (True if format in ("onnx", "torch.export") else None)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.slow
def test_a_fixed_number_of_samples_is_reported(tmp_path: Path) -> None:
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x.reshape(3, 4).sum(1)

    path = tmp_path / "model.pt2"
    assert not write_model(Fixed(), path, "torch.export", Example.of(torch.randn(3, 4)))


def test_inputs_are_given_as_the_engine_gives_them() -> None:
    x = torch.zeros(2, 4)
    assert Example.of(x).args == (x,)
    assert Example.of([x, x]).args == (x, x)
    assert Example.of({"x": x}).kwargs == {"x": x}
    assert at_least_two(x[:1], 1).shape == (2, 4) and at_least_two(x, 2) is x


def test_arrays_are_given_as_tensors() -> None:
    (x,) = Example.of(np.ones((2, 4), dtype=np.float32)).args
    assert isinstance(x, torch.Tensor) and x.dtype == torch.float32


@pytest.mark.parametrize("format", ["onnx", "torch.export", "torchscript"])
def test_inputs_that_no_program_takes_are_named(tmp_path: Path, format: str) -> None:
    class Graph:
        nodes = torch.zeros(2)

    with pytest.raises(ModelError, match="Graph"):
        write_model(make_model(), tmp_path / "model", format, Example.of(Graph()))
    assert not list(tmp_path.iterdir())


def test_tracing_does_not_change_the_inputs_or_the_random_numbers(tmp_path: Path) -> None:
    class Greedy(torch.nn.Linear):
        def forward(self, x):
            torch.rand(1)
            return super().forward(x.mul_(2))

    inputs = torch.ones(3, 4)
    before = torch.random.get_rng_state()
    model = Greedy(4, 1).eval()
    before = torch.random.get_rng_state()
    write_model(model, tmp_path / "model.pt2", "torch.export", Example.of(inputs))
    assert torch.equal(inputs, torch.ones(3, 4))
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_model_that_cannot_be_traced_leaves_no_file(tmp_path: Path) -> None:
    example = Example.of(torch.zeros(2, 9))
    with pytest.raises(ModelError, match="torch.export"):
        write_model(make_model(), tmp_path / "model.pt2", "torch.export", example)
    with pytest.raises(ModelError, match="An example of the inputs is needed"):
        write_model(make_model(), tmp_path / "model.pt2", "torch.export")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", ["torch.export", "torchscript"])
def test_a_full_disk_raises_an_error_and_leaves_no_file(tmp_path: Path, format: str) -> None:
    example = Example.of(torch.ones(3, 4))
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Files that may not grow fail as they do on a full disk. torch's own writer of files would end
    # the process there, by SIGABRT.
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_model(make_model(), tmp_path / "model", format, example)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert not list(tmp_path.iterdir())


def test_a_model_without_forward_has_nothing_to_trace(tmp_path: Path) -> None:
    model = torch.nn.ModuleDict({"one": torch.nn.Linear(4, 1)})
    with pytest.raises(ModelError, match="ModuleDict.*'forward'"):
        write_model(model, tmp_path / "model.pt2", "torch.export", Example.of(torch.zeros(2, 4)))


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_recurrent_layers_are_exported_without_a_word(tmp_path: Path) -> None:
    model = torch.nn.GRU(4, 3, batch_first=True).eval()
    example = Example.of(torch.randn(2, 5, 4))
    assert write_model(model, tmp_path / "model.pt2", "torch.export", example)


def test_weights_too_large_for_onnx_are_rejected(tmp_path: Path) -> None:
    with torch.device("meta"):
        model = torch.nn.Linear(40_000, 40_000)
    with pytest.raises(ModelError, match="6.4.*GB.*ONNX.*2.*GB"):
        write_model(model, tmp_path / "model.onnx", "onnx", Example.of(torch.zeros(2, 4)))


def test_a_format_has_two_names() -> None:
    assert format_named("export") == format_named("torch.export") == "torch.export"
    with pytest.raises(HookloopError, match="'onnx'"):
        format_named("onxx")
