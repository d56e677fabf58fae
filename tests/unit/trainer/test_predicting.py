import pytest
import torch
from tests.tiny import make_data, make_trainer
from torch import nn

from hookloop.errors import DataError
from hookloop.trainer.predicting import call_model

X, Y, MASK = torch.ones(2, 3), torch.zeros(2), torch.ones(2, 3)


class WithLoss(nn.Module):
    """Returns its loss if it gets targets, as many language models do."""

    def forward(self, inputs, labels=None):
        return {"logits": inputs} | ({"loss": inputs.mean()} if labels is not None else {})


class Masked(nn.Module):
    def forward(self, inputs, mask):
        return inputs * mask


class TakesBatch(nn.Module):
    def forward(self, batch):
        return batch["deep"]


def test_with_a_loss_the_first_of_a_pair_is_the_input():
    for batch in (X, (X, Y), [X], {"input": X, "target": Y}, {"input": X}):
        assert call_model(nn.Identity(), batch, has_loss=True) is X


def test_a_model_with_its_own_loss_gets_no_targets_if_it_can_do_without():
    assert list(call_model(WithLoss(), (X, Y), has_loss=False)) == ["logits"]
    assert call_model(Masked(), (X, MASK), has_loss=False).shape == (2, 3)
    assert call_model(Masked(), (X, MASK, Y), has_loss=False).shape == (2, 3)


def test_a_mapping_is_given_by_name():
    assert list(call_model(WithLoss(), {"inputs": X}, has_loss=False)) == ["logits"]
    named = {"inputs": X, "mask": MASK, "weight": Y}
    assert call_model(Masked(), named, has_loss=False).shape == (2, 3)
    assert call_model(TakesBatch(), {"deep": X}, has_loss=False) is X


def test_what_fits_nothing_is_rejected_with_the_signature():
    with pytest.raises(DataError, match=r"Masked.forward\(inputs, mask\)"):
        call_model(Masked(), {"image": X}, has_loss=False)
    with pytest.raises(DataError, match=r"\[float32\[2, 3\]\]"):
        call_model(Masked(), [X], has_loss=False)
    with pytest.raises(DataError, match="step=function"):
        call_model(Masked(), (X,) * 0, has_loss=False)


def test_a_file_has_no_loss_and_names_what_else_has_no_row_per_sample(tmp_path, caplog):
    def step(run, batch):
        output = run.model(batch[0])
        return {"loss": output.mean(), "weight": 4, "scores": output, "scale": torch.ones(())}

    file = make_trainer().predict(make_data(), step=step, to=tmp_path / "out.csv")
    assert file.read_text().splitlines()[0] == "id,scores"
    (said,) = [one.getMessage() for one in caplog.records if "Left out" in one.getMessage()]
    assert said == f"Left out of '{file}', because it has no row per sample: scale."
