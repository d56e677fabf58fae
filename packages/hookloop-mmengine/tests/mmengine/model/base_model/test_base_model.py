"""A model with its own steps."""

import pytest
import torch
from torch import nn

from hookloop_mmengine.model import BaseDataPreprocessor, BaseModel
from hookloop_mmengine.optim import OptimWrapper


class Toy(BaseModel):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.linear = nn.Linear(1, 1, bias=False)
        nn.init.ones_(self.linear.weight)
        self.modes = []

    def forward(self, inputs, targets=None, mode="tensor"):
        self.modes.append(mode)
        output = self.linear(inputs)
        if mode == "loss":
            return {"loss_a": output, "loss_b": [output, 2 * output], "size": output.abs()}
        return [mode, output] if mode == "predict" else output


def wrapper(model):
    return OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.parametrize(
    "batch", [{"inputs": torch.ones(2, 1)}, (torch.ones(2, 1),), [torch.ones(2, 1)]]
)
def test_a_step_makes_an_update(batch):
    model = Toy()
    output = model.train_step(batch, wrapper(model))
    assert list(output) == ["loss", "loss_a", "loss_b", "size"]
    assert float(output["loss"].detach()) == 4
    assert float(output["loss_b"].detach()) == 3
    assert float(model.linear.weight.detach()) == pytest.approx(0.6)


def test_evaluations_predict():
    model = Toy()
    assert model.val_step({"inputs": torch.ones(1, 1)})[0] == "predict"
    assert model.test_step((torch.ones(1, 1),))[0] == "predict"
    assert model(torch.ones(1, 1)).shape == (1, 1)
    assert model.modes == ["predict", "predict", "tensor"]


def test_losses_are_summed_by_their_names():
    total, scalars = Toy().parse_losses(
        {
            "loss": torch.tensor([1.0, 3.0]),
            "aux_loss": [torch.tensor(4.0)],
            "acc": torch.tensor(9.0),
        }
    )
    assert float(total) == 6
    assert {name: float(value) for name, value in scalars.items()} == {
        "loss": 2, "aux_loss": 4, "acc": 9,
    }  # fmt: skip
    with pytest.raises(TypeError, match="loss is not a tensor or list of tensors"):
        Toy().parse_losses({"loss": 3})


def test_a_batch_of_another_kind_is_rejected():
    with pytest.raises(TypeError, match="Output of `data_preprocessor` should be list, tuple or"):
        Toy().val_step(torch.ones(1, 1))


def test_the_preprocessor_is_given_described_or_plain():
    assert type(Toy().data_preprocessor) is BaseDataPreprocessor
    described = Toy(data_preprocessor={"type": "BaseDataPreprocessor", "non_blocking": True})
    assert described.data_preprocessor._non_blocking
    own = nn.Identity()
    assert Toy(data_preprocessor=own).data_preprocessor is own
    with pytest.raises(TypeError, match="data_preprocessor should be a `dict` or `nn.Module`"):
        Toy(data_preprocessor=3)


def test_the_device_is_that_of_the_weights():
    assert Toy().device == torch.device("cpu")
    assert Toy().to("meta").device.type == "meta"
    assert BaseModel.device.fget(nn.Identity()).type == "cpu"
