"""What was exported is run, and compared with the model."""

from pathlib import Path

import pytest
import torch
from tests.tiny import make_model
from tests.unit.checkpoint.test_export import Named

from hookloop.checkpoint.export.export import Example, write_model
from hookloop.checkpoint.export.export_check import compare
from hookloop.errors import ModelError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.slow
@pytest.mark.parametrize("format", ["onnx", "torch.export", "torchscript"])
def test_inputs_by_name_and_a_mapping_as_output(tmp_path: Path, format: str) -> None:
    example = Example.of({"x": torch.randn(3, 4), "scale": torch.tensor([2.0])})
    model = Named(4, 2).eval()
    write_model(model, tmp_path / "model", format, example)
    difference = compare(model, tmp_path / "model", format, example)
    assert difference is not None and difference < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("format", ["onnx", "torch.export", "torchscript"])
def test_a_plain_number_beside_the_output_is_compared(tmp_path: Path, format: str) -> None:
    class Counting(torch.nn.Linear):
        def forward(self, x):
            return {"logits": super().forward(x), "weight": x.numel()}

    example = Example.of(torch.randn(3, 4))
    model = Counting(4, 2).eval()
    write_model(model, tmp_path / "model", format, example)
    difference = compare(model, tmp_path / "model", format, example)
    assert difference is not None and difference < 1e-4


def test_weights_have_nothing_to_run(tmp_path: Path) -> None:
    assert compare(make_model(), tmp_path / "none", "safetensors", Example.of(1)) is None


def test_another_output_is_rejected(tmp_path: Path) -> None:
    example = Example.of(torch.randn(3, 4))
    write_model(make_model(seed=0).eval(), tmp_path / "model", "torch.export", example)
    with pytest.raises(ModelError, match="computes something else than the model"):
        compare(make_model(seed=1).eval(), tmp_path / "model", "torch.export", example)
    with pytest.raises(ModelError, match=r"\[\(3, 1\)\].*\[\(3, 2\)\]"):
        compare(torch.nn.Linear(4, 2), tmp_path / "model", "torch.export", example)


def test_what_is_not_a_number_has_to_be_so_in_both(tmp_path: Path) -> None:
    class Log(torch.nn.Module):
        def forward(self, x):
            return x.log()

    example = Example.of(torch.tensor([[-1.0, 0.0], [1.0, 2.0]]))
    write_model(Log(), tmp_path / "model", "torch.export", example)
    assert compare(Log(), tmp_path / "model", "torch.export", example) == 0
    with pytest.raises(ModelError, match="differ by inf"):
        compare(torch.nn.Identity(), tmp_path / "model", "torch.export", example)
