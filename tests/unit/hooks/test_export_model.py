import json
import os

import pytest
import torch
from tests.tiny import make_data, make_trainer

from hookloop.errors import HookError, ModelError
from hookloop.hooks import ExportModel


def exported(tmp_path, format):
    trainer = make_trainer(hooks=[ExportModel(format)], run_dir=tmp_path)
    trainer.train()
    model = trainer.run.model.eval()
    inputs = torch.randn(7, 4)  # Not the number of samples that the model was traced with.
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


@pytest.mark.slow
def test_export_computes_the_same(tmp_path):
    inputs, expected, _ = exported(tmp_path, "export")
    program = torch.export.load(tmp_path / "model.pt2")
    assert torch.allclose(program.module()(inputs), expected)


@pytest.mark.slow
def test_onnx_computes_the_same_and_says_what_it_is(tmp_path):
    import onnx
    import onnxruntime

    inputs, expected, _ = exported(tmp_path, "onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: inputs.numpy()})
    assert torch.allclose(torch.from_numpy(found), expected, atol=1e-5)
    (entry,) = onnx.load(tmp_path / "model.onnx").metadata_props
    about = json.loads(entry.value)
    assert entry.key == "hookloop" and about["iter"] > 0 and "train/loss" in about["metrics"]


def test_batches_may_be_mappings(tmp_path):
    class Named(torch.nn.Linear):
        def forward(self, x, y=None):
            output = super().forward(x)
            return {"loss": (output - y).square().mean(), "output": output}

    data = [{"x": torch.randn(3, 4), "y": torch.randn(3, 1)}] * 2
    model = Named(4, 1)
    options = {"train_data": data, "step": lambda run, batch: run.model(**batch)}
    for format in ("torchscript", "export"):
        hook = ExportModel(format)
        make_trainer(model=model, hooks=[hook], run_dir=tmp_path / format, **options).train()
    batch = {"x": torch.randn(5, 4), "y": torch.randn(5, 1)}
    program = torch.export.load(tmp_path / "export" / "model.pt2").module()
    assert torch.allclose(program(**batch)["output"], model(**batch)["output"])


def test_the_example_can_be_given(tmp_path):
    hook = ExportModel("export", "net.pt2", inputs=lambda run: torch.zeros(2, 4))
    make_trainer(hooks=[hook], run_dir=tmp_path).train()
    assert torch.export.load(tmp_path / "net.pt2").module()(torch.zeros(2, 4)).shape == (2, 1)


@pytest.mark.parametrize("format", ["torchscript", "export", "onnx"])
def test_a_model_that_cannot_be_traced_gets_advice(tmp_path, format):
    class Picky(torch.nn.Linear):
        def forward(self, inputs):
            if not self.training:
                raise TypeError("only in training")
            return super().forward(inputs)

    model = Picky(4, 1)
    trainer = make_trainer(
        model=model, hooks=[ExportModel(format)], run_dir=tmp_path, train_data=make_data()
    )
    with pytest.raises(ModelError, match=f"give inputs=.* cannot be traced as .*{format}"):
        trainer.train()


def test_a_format_that_does_not_exist_is_rejected():
    with pytest.raises(HookError, match="'safetensors'"):
        ExportModel("safetensor")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("format", ["export", "torchscript"])
def test_a_last_batch_of_one_sample_does_not_limit_the_program(tmp_path, format):
    hook = ExportModel(format)
    trainer = make_trainer(hooks=[hook], train_data=make_data(5), run_dir=tmp_path)
    trainer.train()
    path = tmp_path / hook.file
    program = torch.export.load(path).module() if format == "export" else torch.jit.load(path)
    for samples in (1, 7):
        inputs = torch.randn(samples, 4)
        assert torch.allclose(program(inputs), trainer.run.model(inputs))


def test_the_file_may_be_in_a_directory_of_its_own(tmp_path):
    make_trainer(hooks=[ExportModel(file="export/net.safetensors")], run_dir=tmp_path).train()
    assert (tmp_path / "export" / "net.safetensors").is_file()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize("format", ["safetensors", "torchscript", "export"])
def test_the_file_has_the_mode_that_the_umask_leaves(tmp_path, format):
    before = os.umask(0o027)  # Not the usual one, so that a fixed mode would be found.
    try:
        make_trainer(hooks=[ExportModel(format)], run_dir=tmp_path).train()
    finally:
        os.umask(before)
    (path,) = tmp_path.glob("model.*")
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_mapping_with_input_and_target_is_a_pair(tmp_path):
    data = [{"input": x, "target": y} for x, y in make_data()]
    trainer = make_trainer(hooks=[ExportModel("torchscript")], train_data=data, run_dir=tmp_path)
    trainer.train()
    inputs = torch.randn(7, 4)
    loaded = torch.jit.load(str(tmp_path / "model.pt"))
    assert torch.allclose(loaded(inputs), trainer.run.model.eval()(inputs))
