import pytest
import torch
from tests.tiny import make_data, make_trainer

from hookloop.errors import HookError, ModelError
from hookloop.hooks import ExportModel


def exported(tmp_path, format):
    trainer = make_trainer(hooks=[ExportModel(format)], run_dir=tmp_path)
    trainer.train()
    model = trainer.run.model.eval()
    inputs = torch.randn(4, 4)
    return inputs, model(inputs), model


def test_safetensors_holds_the_weights(tmp_path):
    from safetensors.torch import load_file

    _, _, model = exported(tmp_path, "safetensors")
    loaded = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(loaded[name], value) for name, value in model.state_dict().items())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_computes_the_same(tmp_path):
    inputs, expected, _ = exported(tmp_path, "torchscript")
    loaded = torch.jit.load(str(tmp_path / "model.pt"))
    assert torch.allclose(loaded(inputs), expected) and not loaded.training


def test_export_computes_the_same(tmp_path):
    inputs, expected, _ = exported(tmp_path, "export")
    program = torch.export.load(tmp_path / "model.pt2")
    assert torch.allclose(program.module()(inputs), expected)


def test_the_example_can_be_given(tmp_path):
    hook = ExportModel("export", "net.pt2", inputs=lambda run: torch.zeros(2, 4))
    make_trainer(hooks=[hook], run_dir=tmp_path).train()
    assert torch.export.load(tmp_path / "net.pt2").module()(torch.zeros(2, 4)).shape == (2, 1)


@pytest.mark.parametrize("format", ["torchscript", "export"])
def test_a_model_that_cannot_be_traced_is_told_what_to_do(tmp_path, format):
    class Picky(torch.nn.Linear):
        def forward(self, inputs):
            if not self.training:
                raise TypeError("only in training")
            return super().forward(inputs)

    model = Picky(4, 1)
    trainer = make_trainer(
        model=model, hooks=[ExportModel(format)], run_dir=tmp_path, train_data=make_data()
    )
    with pytest.raises(ModelError, match=f"cannot be traced as {format}.* give inputs="):
        trainer.train()


def test_a_format_that_does_not_exist_is_refused():
    with pytest.raises(HookError, match="Did you mean 'safetensors'"):
        ExportModel("safetensor")
