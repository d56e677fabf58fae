"""`describe_model`: modules, shapes, parameters, and no trace in the model."""

import pytest
import torch
from torch import nn

from hookloop import describe_model


class Counting(nn.Module):
    """Counts its calls, draws, and uses one layer twice."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.layer.weight
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, inputs):
        self.calls += 1
        noise = torch.rand(())
        return {"out": self.tied(self.layer(self.layer(inputs))) + noise}


def test_the_model_is_as_before():
    model = nn.Sequential(Counting())
    model[0].layer.eval()
    before = torch.get_rng_state()
    table = describe_model(model, torch.zeros(2, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert model[0].calls == 0
    assert (model.training, model[0].layer.training) == (True, False)
    assert not any(module._forward_hooks for module in model.modules())
    rows = {row.path: row for row in table.rows}
    assert rows["0"].output == "{out: float32[2, 4]}"
    assert (rows["0.layer"].calls, rows["0.tied"].calls) == (2, 1)
    assert table.parameters == 16 + 4 + 4  # The tied weight counts once.


@pytest.mark.parametrize(
    "batch",
    [
        torch.zeros(2, 4),
        (torch.zeros(2, 4), torch.zeros(2)),
        [torch.zeros(2, 4), torch.zeros(2)],
        {"input": torch.zeros(2, 4), "target": torch.zeros(2)},
        (torch.zeros(2, 4),),
    ],
)
def test_the_inputs_of_a_batch_are_given_to_the_model(batch):
    assert describe_model(nn.Linear(4, 3), batch).rows[0].output == "float32[2, 3]"


def test_without_a_batch_there_are_no_shapes():
    table = describe_model(nn.Sequential(nn.LazyLinear(3), nn.Linear(3, 1).requires_grad_(False)))
    assert [row.output for row in table.rows] == ["", "", ""]
    assert (table.parameters, table.trainable) == (4, 0)
    assert len(table.to_depth(0).rows) == 1
    assert "0%" in str(table)


def test_the_way_into_the_model_can_be_given():
    model = nn.Bilinear(2, 3, 4)
    batch = {"a": torch.zeros(5, 2), "b": torch.zeros(5, 3)}
    table = describe_model(model, batch, forward=lambda one: model(one["a"], one["b"]))
    assert table.rows[0].output == "float32[5, 4]"


def test_a_batch_that_does_not_fit_names_the_module():
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(2, 1))
    with pytest.raises(RuntimeError) as caught:
        describe_model(model, torch.zeros(2, 4))
    assert "in model.1 (Linear(in_features=2, out_features=1, bias=True))" in caught.value.__notes__
    assert not any(module._forward_hooks for module in model.modules())
