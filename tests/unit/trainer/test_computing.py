"""The ways to compute output and loss: with ``loss=``, by the model itself, or by a step."""

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer
from torch import nn
from torch.nn import functional

from hookloop.errors import DataError, ModelError


def test_a_model_that_returns_its_loss_needs_no_loss_function():
    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
            loss = ((self.layer(x) - y) ** 2).mean()
            return {"loss": loss, "twice": 2 * loss}

    trainer = make_trainer(model=Own(), loss=None)
    trainer.train()
    store = trainer.run.metrics
    assert store.latest("train/twice") == pytest.approx(2 * store.latest("train/loss"))


def test_batches_that_do_not_fit_the_loss_are_rejected():
    with pytest.raises(DataError, match=r"train_data.*\[float32\[2, 4\]"):
        make_trainer(train_data=[[torch.ones(2, 4)] * 3]).train()


def test_a_forgotten_return_is_rejected():
    with pytest.raises(ModelError, match="loss=.*None"):
        make_trainer(loss=lambda output, targets: None).train()

    class Silent(torch.nn.Linear):
        def forward(self, inputs, targets):
            super().forward(inputs)

    with pytest.raises(ModelError, match="The model returned None: return the loss"):
        make_trainer(model=Silent(4, 1), loss=None).train()


class TakesAll(nn.Module):
    """Takes the parts of a batch as its arguments, and returns its loss."""

    def __init__(self):
        super().__init__()
        self.model = make_model()

    def forward(self, inputs, targets=None):
        if targets is None:
            inputs, targets = inputs[:, :4].contiguous(), inputs[:, 4:].contiguous()
        return functional.mse_loss(self.model(inputs), targets)


BATCHES = {
    "tuple": lambda inputs, targets: (inputs, targets),
    "list": lambda inputs, targets: [inputs, targets],
    "mapping": lambda inputs, targets: {"targets": targets, "inputs": inputs},
    "tensor": lambda inputs, targets: torch.cat([inputs, targets], 1),
}


@pytest.mark.parametrize("form", BATCHES.values(), ids=BATCHES)
def test_a_model_that_returns_its_loss_is_given_the_whole_batch(form):
    expected = make_trainer()
    expected.train()
    data = [form(inputs, targets) for inputs, targets in make_data()]
    trainer = make_trainer(model=TakesAll(), loss=None, train_data=data)
    trainer.train()
    assert_same_bits(trainer.run.model.model, expected.run.model)


def test_a_mapping_with_input_and_target_is_trained_on_like_a_pair(tmp_path):
    def named(data):
        return [{"input": x, "target": y, "id": 1} for x, y in data]

    parts = {"metrics": {"error": functional.l1_loss}}
    pairs = make_trainer(val_data=make_data(8), run_dir=tmp_path / "a", **parts)
    data = {"train_data": named(make_data()), "val_data": named(make_data(8))}
    mappings = make_trainer(run_dir=tmp_path / "b", **data, **parts)
    pairs.train()
    mappings.train()
    assert_same_bits(pairs.run.model, mappings.run.model)
    for name in ("val/loss", "val/error"):
        assert pairs.run.metrics.latest(name) == mappings.run.metrics.latest(name)
